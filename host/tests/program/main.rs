//! The program and its files, tested from outside. One test program for all of it: each would link
//! the whole host anew.

mod bench;
mod cli;
mod common;
mod explain;
mod files;
mod npy;
mod plots;
mod scales;
