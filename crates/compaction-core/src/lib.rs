#![doc = include_str!("../README.md")]

pub mod extractive;
pub mod verbatim;
