// SPDX-License-Identifier: MIT OR Apache-2.0
//! JSON for people and for line-based tools, with one line per cell.

use std::io::{self, Write};

use anyhow::Result;
use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

/// Nesting depth beyond which values stay on the line of the enclosing value.
const DEPTH: usize = 2;

/// Returns the JSON text of `value`, followed by a line end.
pub fn text(value: &impl Serialize) -> Result<String> {
    let mut bytes = Vec::new();
    value.serialize(&mut Serializer::with_formatter(
        &mut bytes,
        Shallow::default(),
    ))?;
    bytes.push(b'\n');
    Ok(String::from_utf8(bytes)?)
}

/// A formatter that breaks lines only down to the nesting depth [`DEPTH`].
#[derive(Debug, Default)]
struct Shallow {
    depth: usize,
    /// Whether the array or object that is being written, or was closed last, has any content.
    filled: bool,
}

impl Shallow {
    fn open_bracket(
        &mut self,
        writer: &mut (impl Write + ?Sized),
        bracket: &[u8],
    ) -> io::Result<()> {
        self.depth += 1;
        self.filled = false;
        writer.write_all(bracket)
    }

    fn close_bracket(
        &mut self,
        writer: &mut (impl Write + ?Sized),
        bracket: &[u8],
    ) -> io::Result<()> {
        self.depth -= 1;
        if self.filled && self.depth < DEPTH {
            self.break_line(writer)?;
        }
        writer.write_all(bracket)
    }

    fn begin_item(&mut self, writer: &mut (impl Write + ?Sized), first: bool) -> io::Result<()> {
        if !first {
            writer.write_all(b",")?;
        }
        match self.depth {
            ..=DEPTH => self.break_line(writer),
            _ => Ok(()),
        }
    }

    fn break_line(&self, writer: &mut (impl Write + ?Sized)) -> io::Result<()> {
        writer.write_all(b"\n")?;
        writer.write_all(b"  ".repeat(self.depth).as_slice())
    }
}

impl Formatter for Shallow {
    fn begin_array<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open_bracket(writer, b"[")
    }

    fn end_array<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close_bracket(writer, b"]")
    }

    fn begin_array_value<W: Write + ?Sized>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.begin_item(writer, first)
    }

    fn end_array_value<W: Write + ?Sized>(&mut self, _: &mut W) -> io::Result<()> {
        self.filled = true;
        Ok(())
    }

    fn begin_object<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open_bracket(writer, b"{")
    }

    fn end_object<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close_bracket(writer, b"}")
    }

    fn begin_object_key<W: Write + ?Sized>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.begin_item(writer, first)
    }

    fn begin_object_value<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(if self.depth <= DEPTH { b": " } else { b":" })
    }

    fn end_object_value<W: Write + ?Sized>(&mut self, _: &mut W) -> io::Result<()> {
        self.filled = true;
        Ok(())
    }
}
