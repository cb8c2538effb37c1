//! Sessions from the outside: prompts in, events and a file out.

use foldline_llm_client::testing::Script;

use crate::event::RunEnd;
use crate::testing::{Rig, overflow, summary, used};
use crate::{CompactOptions, Prompted};

mod cancel;
mod faults;
mod loops;
mod overflow_recovery;
mod patience;
mod pivot;
mod small_window;
mod tables;
mod turns;
mod waiting;
