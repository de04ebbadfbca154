// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the boot arguments: typed text, or the text file next to the image.
//!
//! Load options count as the arguments if one of their words names an option of ours. A boot manager may pass
//! anything there, even binary data, and a shell puts the program's name first; without an option of ours, such words
//! do not count. In that case, the file [`config::PATH`] is read, if it exists on the volume that the image was
//! loaded from.

use core::fmt;

use spin::once::Once;
use uefi::boot::{get_image_file_system, image_handle, open_protocol_exclusive};
use uefi::data_types::CStr16;
use uefi::proto::loaded_image::LoadedImage;
use uefi::proto::media::file::{File, FileAttribute, FileMode};
use uefi::{Status, cstr16};

use crate::say;

/// Prefix of every option of ours.
const OURS: &str = "rouse.";

/// The arguments, for as long as the machine runs.
static TEXT: Once<([u8; config::LIMIT], usize)> = Once::new();

/// Reason why the arguments can't be used.
pub enum Error {
    /// The file exists, but can't be read.
    File(uefi::Error),
    /// The file, or the typed text, does not have the right form.
    Text(&'static str, config::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(error) => write!(f, "{}: {error}", config::PATH),
            Self::Text(place, error) => write!(f, "{place}: {error}"),
        }
    }
}

/// Reads the arguments and returns them; the text is empty if there are none.
pub fn read() -> Result<&'static str, Error> {
    let mut source = [0; config::LIMIT + 1];
    let mut room = [0; config::LIMIT];
    let mut place = "load options";
    let mut length = copy_load_options(&mut source);
    if !has_our_option(&source[..length]) {
        place = config::PATH;
        length = read_file(&mut source).map_err(Error::File)?.unwrap_or(0);
    }
    let text = config::parse(&source[..length], &mut room);
    let length = text.map_err(|error| Error::Text(place, error))?.len();
    if length > 0 {
        say!("boot arguments from {place}");
    }
    let (room, length) = TEXT.call_once(|| (room, length));
    // The buffer has only whole ASCII characters.
    Ok(core::str::from_utf8(&room[..*length]).unwrap_or(""))
}

/// Returns the arguments that [`read`] has read; empty text if it has not run, or has failed.
pub fn last_arguments() -> &'static str {
    let text = TEXT.get().map(|(room, length)| &room[..*length]);
    core::str::from_utf8(text.unwrap_or_default()).unwrap_or("")
}

/// Whether a word of `text` begins like our options.
fn has_our_option(text: &[u8]) -> bool {
    let mut words = text.split(u8::is_ascii_whitespace);
    words.any(|word| word.starts_with(OURS.as_bytes()))
}

/// Writes the load options to `to` as bytes, from the first option of ours on, and returns their
/// number. A character above 0xff becomes 0xff, which no text may contain.
fn copy_load_options(to: &mut [u8]) -> usize {
    let Ok(image) = open_protocol_exclusive::<LoadedImage>(image_handle()) else {
        return 0;
    };
    let Some(bytes) = image.load_options_as_bytes() else {
        return 0;
    };
    let (pairs, _) = bytes.as_chunks::<2>();
    let characters = pairs.iter().map(|pair| u16::from_le_bytes(*pair));
    let characters = characters.take_while(|character| *character != 0);
    let mut length = 0;
    for (byte, character) in to.iter_mut().zip(characters) {
        *byte = u8::try_from(character).unwrap_or(u8::MAX);
        length += 1;
    }
    // A shell puts the program's name first.
    let ours = to[..length]
        .windows(OURS.len())
        .position(|window| window == OURS.as_bytes());
    to.copy_within(ours.unwrap_or(length)..length, 0);
    length - ours.unwrap_or(length)
}

/// Reads as many bytes of the arguments' file as `to` holds, and returns their number.
fn read_file(to: &mut [u8]) -> Result<Option<usize>, uefi::Error> {
    let Ok(mut volume) = get_image_file_system(image_handle()) else {
        return Ok(None);
    };
    let mut root = volume.open_volume()?;
    let mut path = [0; 32];
    let path = CStr16::from_str_with_buf(config::PATH, &mut path).unwrap_or(cstr16!("\\ROUSE.TXT"));
    let file = match root.open(path, FileMode::Read, FileAttribute::empty()) {
        Err(error) if error.status() == Status::NOT_FOUND => return Ok(None),
        file => file?,
    };
    let Some(mut file) = file.into_regular_file() else {
        return Ok(None);
    };
    Ok(Some(file.read(to).map_err(|error| error.status())?))
}
