#![doc = include_str!("../README.md")]

pub mod hooks;
pub mod settings;
pub mod tool;
pub mod tools;
pub mod work;
