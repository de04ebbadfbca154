// SPDX-License-Identifier: MIT OR Apache-2.0
//! The structure of a tagged PDF: which element has something on which page.
//!
//! It reads what Chromium writes: a table of references as text, and no object in a
//! stream (ISO 32000-1, 7.5). Anything else is an error.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};

/// An element, such as a heading or a row.
#[derive(Clone, Debug, Default)]
pub struct Element {
    /// `H1`, `Table`, `TR`.
    pub role: String,
    /// Pages, from 0, on which it has something itself, in the order of what it has.
    pub marks: Vec<usize>,
    /// What is in it.
    pub within: Vec<Element>,
}

impl Element {
    /// It and all that is in it, as they follow each other.
    pub fn all(&self) -> Vec<&Self> {
        let mut all = vec![self];
        for child in &self.within {
            all.extend(child.all());
        }
        all
    }

    /// The pages on which it or something in it is, in order.
    pub fn pages(&self) -> Vec<usize> {
        let all = self.all();
        let mut pages: Vec<usize> = all
            .iter()
            .flat_map(|element| element.marks.iter().copied())
            .collect();
        pages.sort_unstable();
        pages.dedup();
        pages
    }

    /// Whether it is a row of headings alone.
    pub fn is_head(&self) -> bool {
        let all = self.all();
        let has = |role: &str| all.iter().any(|element| element.role == role);
        self.role == "TR" && has("TH") && !has("TD")
    }
}

/// An object.
#[derive(Clone, Debug)]
enum Object {
    Name(String),
    Number,
    Reference(usize),
    List(Vec<Object>),
    Dictionary(BTreeMap<String, Object>),
    /// What is not asked for: texts, nothing, yes and no.
    Other,
}

impl Object {
    fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Dictionary(entries) => entries.get(key),
            _ => None,
        }
    }

    fn reference(&self) -> Option<usize> {
        match self {
            Self::Reference(number) => Some(*number),
            _ => None,
        }
    }

    /// A list, or one of one.
    fn list(&self) -> Vec<&Self> {
        match self {
            Self::List(objects) => objects.iter().collect(),
            one => vec![one],
        }
    }
}

/// The elements of a document, in one.
///
/// # Errors
///
/// If it is no PDF of Chromium's, or is not tagged.
pub fn read(bytes: &[u8]) -> Result<Element> {
    let file = File::open(bytes)?;
    let root = file.follow(file.trailer.get("Root").context("no root")?)?;
    let pages = root.get("Pages").context("no pages")?;
    let mut order = Vec::new();
    file.list_pages(pages, &mut order)?;
    let tree = root.get("StructTreeRoot").context("it is not tagged")?;
    let tree = file.follow(tree)?;
    let mut document = Element::default();
    for child in tree.get("K").context("no structure")?.list() {
        file.add(child, &order, None, &mut document)?;
    }
    Ok(document)
}

struct File<'b> {
    bytes: &'b [u8],
    /// Where each object begins.
    places: Vec<usize>,
    trailer: Object,
}

impl<'b> File<'b> {
    fn open(bytes: &'b [u8]) -> Result<Self> {
        let tail = &bytes[bytes.len().saturating_sub(64)..];
        let tail = String::from_utf8_lossy(tail);
        let (_, begin) = tail.rsplit_once("startxref").context("no table")?;
        let begin: usize = begin
            .split_whitespace()
            .next()
            .context("no place of the table")?
            .parse()?;
        let table = String::from_utf8_lossy(bytes.get(begin..).context("no table")?).into_owned();
        let (table, _) = table.split_once("trailer").context("no trailer")?;
        let mut words = table.split_whitespace();
        ensure!(words.next() == Some("xref"), "a table of another kind");
        let first: usize = words.next().context("no first object")?.parse()?;
        ensure!(first == 0, "the table has parts");
        let count: usize = words.next().context("no count")?.parse()?;
        let mut places = Vec::with_capacity(count);
        for _ in 0..count {
            places.push(words.next().context("a short table")?.parse()?);
            words.nth(1);
        }
        let trailer = begin + table.len() + "trailer".len();
        let trailer = Reader { bytes, at: trailer }.object()?;
        Ok(Self {
            bytes,
            places,
            trailer,
        })
    }

    /// The object that is meant.
    fn follow(&self, object: &Object) -> Result<Object> {
        let Some(number) = object.reference() else {
            return Ok(object.clone());
        };
        let at = *self.places.get(number).context("no such object")?;
        let mut reader = Reader {
            bytes: self.bytes,
            at,
        };
        // Its number, its generation, and `obj`.
        for _ in 0..3 {
            reader.word();
        }
        reader.object()
    }

    fn list_pages(&self, pages: &Object, order: &mut Vec<usize>) -> Result<()> {
        let node = self.follow(pages)?;
        match node.get("Kids") {
            Some(kids) => {
                for kid in kids.list() {
                    self.list_pages(kid, order)?;
                }
            }
            None => order.extend(pages.reference()),
        }
        Ok(())
    }

    /// Adds a child to an element: a further element, or a mark on a page.
    fn add(
        &self,
        child: &Object,
        order: &[usize],
        page: Option<usize>,
        parent: &mut Element,
    ) -> Result<()> {
        let node = self.follow(child)?;
        let own = node.get("Pg").and_then(Object::reference);
        let own = own.and_then(|number| order.iter().position(|page| *page == number));
        let own = own.or(page);
        match (&node, node.get("S")) {
            (_, Some(Object::Name(role))) => {
                let mut element = Element {
                    role: role.clone(),
                    ..Element::default()
                };
                for inner in node.get("K").map(Object::list).unwrap_or_default() {
                    self.add(inner, order, own, &mut element)?;
                }
                parent.within.push(element);
            }
            (Object::Number, _) => parent.marks.extend(page),
            // An object, such as a link's rectangle, is where its text is too.
            _ if node.get("MCID").is_some() => parent.marks.extend(own),
            _ => {}
        }
        Ok(())
    }
}

struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    fn space(&mut self) {
        while self.peek().is_ascii_whitespace() {
            self.at += 1;
        }
    }

    /// What is up to the next space or delimiter.
    fn word(&mut self) -> String {
        self.space();
        let begin = self.at;
        while self.at < self.bytes.len()
            && !self.peek().is_ascii_whitespace()
            && !b"/<>[]()".contains(&self.peek())
        {
            self.at += 1;
        }
        String::from_utf8_lossy(&self.bytes[begin..self.at]).into_owned()
    }

    fn object(&mut self) -> Result<Object> {
        self.space();
        let next = self.bytes.get(self.at + 1).copied().unwrap_or(0);
        match (self.peek(), next) {
            (b'/', _) => {
                self.at += 1;
                Ok(Object::Name(self.word()))
            }
            (b'<', b'<') => {
                self.at += 2;
                let mut entries = BTreeMap::new();
                loop {
                    self.space();
                    match self.peek() {
                        b'>' => break,
                        b'/' => self.at += 1,
                        other => bail!("{} in a dictionary", other.escape_ascii()),
                    }
                    let key = self.word();
                    entries.insert(key, self.object()?);
                }
                self.at += 2;
                Ok(Object::Dictionary(entries))
            }
            (b'[', _) => {
                self.at += 1;
                let mut objects = Vec::new();
                loop {
                    self.space();
                    if self.peek() == b']' {
                        break;
                    }
                    objects.push(self.object()?);
                }
                self.at += 1;
                Ok(Object::List(objects))
            }
            (b'(', _) => self.text(),
            (b'<', _) => {
                while self.at < self.bytes.len() && self.peek() != b'>' {
                    self.at += 1;
                }
                self.at += 1;
                Ok(Object::Other)
            }
            _ => self.scalar(),
        }
    }

    /// A text in parentheses, which nest.
    fn text(&mut self) -> Result<Object> {
        let mut depth = 0;
        loop {
            match self.peek() {
                b'\\' => self.at += 1,
                b'(' => depth += 1,
                b')' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            ensure!(self.at < self.bytes.len(), "a text without end");
            if depth == 0 {
                return Ok(Object::Other);
            }
        }
    }

    /// A number, a reference, or a word.
    fn scalar(&mut self) -> Result<Object> {
        let word = self.word();
        ensure!(!word.is_empty(), "no object at {}", self.at);
        if word.parse::<f64>().is_err() {
            return Ok(Object::Other);
        }
        let back = self.at;
        let generation = self.word();
        if let (Ok(number), Ok(_)) = (word.parse(), generation.parse::<u32>())
            && self.word() == "R"
        {
            return Ok(Object::Reference(number));
        }
        self.at = back;
        Ok(Object::Number)
    }
}

/// Bytes from their text (RFC 4648, 4).
///
/// # Errors
///
/// If it is none.
pub fn from_base64(text: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    for c in text.bytes().filter(|c| *c != b'=') {
        let six = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            other => bail!("{} is not of base64", other.escape_ascii()),
        };
        bits = bits << 6 | u32::from(six);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_from_their_text() {
        for (text, bytes) in [
            ("", ""),
            ("YQ==", "a"),
            ("YWI=", "ab"),
            ("Zm9vYmFy", "foobar"),
        ] {
            assert_eq!(from_base64(text).unwrap(), bytes.as_bytes());
        }
        assert!(from_base64("Zm9*").is_err());
    }

    /// A file of two pages: a heading on the first, a row on both.
    fn file() -> Vec<u8> {
        let objects = [
            "<< /Pages 2 0 R /StructTreeRoot 5 0 R >>",
            "<</Kids [3 0 R 4 0 R]>>",
            "<</Type /Page>>",
            "<</Type /Page /Title (a \\) b)>>",
            "<</K 6 0 R>>",
            "<</S /Document /K [7 0 R 8 0 R]>>",
            "<</S /H1 /Pg 3 0 R /K [0 1]>>",
            "<</S /TR /Pg 3 0 R /K [2 <</Type /MCR /Pg 4 0 R /MCID 0>>] /ID <aa>>>",
        ];
        let mut text = String::from("%PDF-1.4\n");
        let mut table = String::from("0000000000 65535 f \n");
        for (number, object) in (1..).zip(objects) {
            table += &format!("{:010} 00000 n \n", text.len());
            text += &format!("{number} 0 obj\n{object}\nendobj\n");
        }
        let begin = text.len();
        text += &format!("xref\n0 9\n{table}trailer\n<</Root 1 0 R>>\nstartxref\n{begin}\n%%EOF");
        text.into_bytes()
    }

    #[test]
    fn elements_know_their_pages() {
        let document = read(&file()).unwrap();
        let all = document.all();
        let roles: Vec<&str> = all.iter().map(|element| element.role.as_str()).collect();
        assert_eq!(roles, ["", "Document", "H1", "TR"]);
        assert_eq!(all[2].pages(), [0]);
        assert_eq!(all[3].pages(), [0, 1]);
    }

    #[test]
    fn what_is_no_such_file_is_refused() {
        let whole = file();
        for length in [0, 10, whole.len() / 2] {
            assert!(read(&whole[..length]).is_err());
        }
        let text = String::from_utf8(whole).unwrap();
        assert!(read(text.replace("StructTreeRoot", "StructTreeRoom").as_bytes()).is_err());
    }
}
