#![doc = include_str!("../README.md")]

pub mod tool;
pub mod tools;
pub mod work;
