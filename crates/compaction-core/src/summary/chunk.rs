//! A transcript that is cut, split and at last shortened until each piece fits its request (R03).

use foldline_session_model::tokens::TokenCounter;
use foldline_session_model::{EntryIx, Tokens};

use super::bound::{Elision, bounded};
use super::transcript::{Caps, Part, Transcript, join};

/// More requests than this are never made for one summary.
const MOST_PIECES: usize = 16;

/// A transcript in pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fitted {
    /// The pieces, oldest first.
    pub(super) pieces: Vec<Piece>,
    /// Entries for which there was no room in any of them.
    pub(super) dropped: Vec<EntryIx>,
}

/// What one request shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) text: String,
    /// The entries in it.
    pub(super) entries: Vec<EntryIx>,
}

/// Fits a transcript into pieces of at most `room` tokens. Steps, each only if the one before was not enough: shorter
/// tool results and calls, several pieces, the newest of them.
pub(super) fn fit(
    transcript: impl Fn(Caps) -> Transcript,
    room: Option<Tokens>,
    counter: &dyn TokenCounter,
) -> Fitted {
    let whole = transcript(Caps::USUAL);
    if whole.parts.iter().all(|part| part.text.is_empty()) {
        return Fitted {
            pieces: Vec::new(),
            dropped: whole.parts.iter().map(|part| part.source).collect(),
        };
    }
    let Some(room) = room else { return one(&whole) };
    if counter.one(&whole.text()) <= room {
        return one(&whole);
    }
    let tight = transcript(Caps::TIGHT);
    if counter.one(&tight.text()) <= room {
        return one(&tight);
    }
    let mut pieces = split(tight.parts, room, counter);
    let dropped = pieces
        .drain(..pieces.len().saturating_sub(MOST_PIECES))
        .flat_map(|piece| piece.entries)
        .collect();
    Fitted { pieces, dropped }
}

fn one(transcript: &Transcript) -> Fitted {
    Fitted {
        pieces: vec![Piece {
            text: transcript.text(),
            entries: transcript.parts.iter().map(|p| p.source).collect(),
        }],
        dropped: Vec::new(),
    }
}

/// Pieces of whole parts. A part that is too long for a piece of its own loses its middle.
fn split(parts: Vec<Part>, room: Tokens, counter: &dyn TokenCounter) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut open: Vec<Part> = Vec::new();
    let mut used = Tokens::ZERO;
    let mut close = |open: &mut Vec<Part>| {
        if !open.is_empty() {
            pieces.push(Piece {
                text: join(open),
                entries: open.iter().map(|p| p.source).collect(),
            });
            open.clear();
        }
    };
    for mut part in parts {
        // One more for the blank line.
        let mut size = counter.one(&part.text) + Tokens(1);
        if size > room {
            part.text = bounded(
                &part.text,
                room.saturating_sub(Tokens(1)),
                Elision::TRANSCRIPT,
                counter,
            )
            .0;
            size = room;
        }
        if used + size > room {
            close(&mut open);
            used = Tokens::ZERO;
        }
        used += size;
        open.push(part);
    }
    close(&mut open);
    pieces
}
