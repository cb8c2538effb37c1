//! The binary from the outside: one test program, one module for each command.

mod check;
mod compact;
mod errors;
mod read;
mod support;
