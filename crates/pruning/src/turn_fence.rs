//! The turn fence: the newest turns of the user stay whole (seed 000, "Pre-compaction pruning"; spec "Pruning", 4).

use foldline_session_model::message::Message;

use crate::view::View;

/// The first position that is fenced; the length of the view if none is.
///
/// Turns start at what the user typed or ran. Text that a program wrote in the user's name starts none, and neither do
/// custom messages, summaries and compactions: the seed counts real turns only.
pub(crate) fn first_fenced(view: &View<'_>, protect_recent_turns: u32) -> usize {
    let mut left = protect_recent_turns;
    let mut fence = view.items.len();
    for (index, item) in view.items.iter().enumerate().rev() {
        if left == 0 {
            break;
        }
        if starts_real_turn(item.message) {
            fence = index;
            left -= 1;
        }
    }
    fence
}

fn starts_real_turn(message: &Message<'_>) -> bool {
    match message {
        Message::User(m) => !m.synthetic,
        Message::BashExecution(_) => true,
        _ => false,
    }
}
