//! What was said to a session, and what became of it.

/// Which messages keep their order among each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    Steer,
    FollowUp,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Nobody was told.
    Unknown,
    /// It was accepted, at this moment.
    Accepted(usize),
    /// It was refused.
    Refused,
}

#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) queue: Queue,
    pub(crate) at: usize,
    pub(crate) fate: Fate,
}

/// Everything that was said. Moments are counted, one for each message and each acknowledgement.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) said: Vec<Said>,
    moment: usize,
}

impl Ledger {
    pub(crate) fn say(&mut self, queue: Queue) -> (usize, String) {
        self.moment += 1;
        let at = self.moment;
        self.said.push(Said {
            queue,
            at,
            fate: Fate::Unknown,
        });
        let number = self.said.len() - 1;
        let text = format!(
            "message {number}: {}",
            "please look at this ".repeat(number % 7 * 12)
        );
        (number, text)
    }

    pub(crate) fn accepted(&mut self, number: usize) {
        self.moment += 1;
        let moment = self.moment;
        let said = &mut self.said[number];
        if said.fate == Fate::Unknown {
            said.fate = Fate::Accepted(moment);
        }
    }

    /// Of a machine that has stopped nobody knows what it still wrote.
    pub(crate) fn refused(&mut self, number: usize, stopped: bool) {
        let said = &mut self.said[number];
        assert_eq!(
            said.fate,
            Fate::Unknown,
            "message {number} was accepted and refused"
        );
        if !stopped {
            said.fate = Fate::Refused;
        }
    }
}
