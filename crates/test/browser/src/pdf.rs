// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the structure of a tagged PDF (ISO 32000-1, 14.7): the pages on which each element has content.

use anyhow::{Context, Result, anyhow};
use hayro_syntax::Pdf;
use hayro_syntax::object::{Dict, Object, ObjectIdentifier};

/// An element, such as a heading or a row.
#[derive(Clone, Debug, Default)]
pub struct Element {
    /// The kind of element, such as `H1`, `Table` or `TR`.
    pub role: String,
    /// Pages, counted from 0, on which the element itself has content, in the order of the content.
    pub marks: Vec<usize>,
    /// The elements within this element.
    pub within: Vec<Element>,
}

impl Element {
    /// Returns the element and everything in it, in document order.
    pub fn all(&self) -> Vec<&Self> {
        let mut all = vec![self];
        for child in &self.within {
            all.extend(child.all());
        }
        all
    }

    /// Returns the pages on which the element or an element within it has content, in order and without repetition.
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

    /// Returns whether the element is a row that consists only of header cells.
    pub fn is_head(&self) -> bool {
        let all = self.all();
        let has = |role: &str| all.iter().any(|element| element.role == role);
        self.role == "TR" && has("TH") && !has("TD")
    }
}

/// Reads a PDF, and returns one element that contains all its elements.
///
/// # Errors
///
/// If the bytes are not a PDF, or the PDF is not tagged.
pub fn read(bytes: Vec<u8>) -> Result<Element> {
    let file = Pdf::new(bytes).map_err(|error| anyhow!("no PDF: {error:?}"))?;
    let pages = file.pages().iter().map(|page| page.raw().obj_id());
    let pages: Vec<Option<ObjectIdentifier>> = pages.collect();
    let root = file.xref().get::<Dict<'_>>(file.xref().root_id());
    let tree = root.and_then(|root| root.get::<Dict<'_>>("StructTreeRoot"));
    let mut document = Element::default();
    for child in children(&tree.context("it is not tagged")?) {
        add(&child, &pages, None, &mut document);
    }
    Ok(document)
}

/// Returns the children of a node. The PDF stores them as a list, or as a single object.
fn children<'f>(node: &Dict<'f>) -> Vec<Object<'f>> {
    match node.get::<Object<'_>>("K") {
        Some(Object::Array(list)) => list.iter().collect(),
        one => one.into_iter().collect(),
    }
}

/// Adds a child to an element: a further element, or a mark on a page.
fn add(
    child: &Object<'_>,
    pages: &[Option<ObjectIdentifier>],
    page: Option<usize>,
    parent: &mut Element,
) {
    let node = match child {
        Object::Dict(node) => node,
        Object::Number(_) => return parent.marks.extend(page),
        _ => return,
    };
    let own = node.get_ref("Pg").map(ObjectIdentifier::from);
    let own = own.and_then(|own| pages.iter().position(|page| *page == Some(own)));
    let own = own.or(page);
    if let Some(Object::Name(role)) = node.get("S") {
        let mut element = Element {
            role: role.as_str().to_owned(),
            ..Element::default()
        };
        for inner in children(node) {
            add(&inner, pages, own, &mut element);
        }
        parent.within.push(element);
    } else if node.contains_key("MCID") {
        // An object, such as a link's rectangle, is on the same page as its text.
        parent.marks.extend(own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a file with two pages. The first page has a heading, and each page has a row.
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
        let document = read(file()).unwrap();
        let all = document.all();
        let roles: Vec<&str> = all.iter().map(|element| element.role.as_str()).collect();
        assert_eq!(roles, ["", "Document", "H1", "TR"]);
        assert_eq!(all[2].pages(), [0]);
        assert_eq!(all[3].pages(), [0, 1]);
    }

    #[test]
    fn a_file_without_tags_is_refused() {
        let text = String::from_utf8(file()).unwrap();
        assert!(read(text.replace("StructTreeRoot", "StructTreeRoom").into()).is_err());
        assert!(read(b"%PDF-1.4".to_vec()).is_err());
    }
}
