#![doc = include_str!("../README.md")]

mod abandoned;
mod navigation;
#[cfg(test)]
mod testing;

pub use abandoned::Abandoned;
pub use navigation::Navigation;
