// SPDX-License-Identifier: MIT OR Apache-2.0
//! Publishes documents with their figures, the book, and the folder of a release.

// Public to the programs of this workspace alone: a field whose name says it all has no line.
#![allow(missing_docs)]

pub mod book;
pub mod dist;
pub mod pages;
pub mod publish;
