// SPDX-License-Identifier: MIT OR Apache-2.0
//! Publishes documents with their figures, the book, and the folder of a release.

// This crate is only for programs of this workspace, so a field with a clear name needs no comment.
#![allow(missing_docs)]

pub mod book;
pub mod dist;
pub mod pages;
pub mod publish;
