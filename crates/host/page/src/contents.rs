// SPDX-License-Identifier: MIT OR Apache-2.0
//! The list of a page's sections, which is derived from the page's markup.

use maud::{Markup, PreEscaped, html};

/// Start of a section's markup, up to its name.
const SECTION: &str = "<section id=\"";
const TITLE: [&str; 2] = ["<h2>", "</h2>"];

/// Returns `body` with a list of links to its sections, placed before the first section, if there are several sections.
pub fn insert_contents(body: Markup) -> Markup {
    let body = body.into_string();
    let sections = find_sections(&body);
    let first = body.find(SECTION).unwrap_or(0);
    if sections.len() < 2 {
        return PreEscaped(body);
    }
    let (before, rest) = body.split_at(first);
    html! {
        (PreEscaped(before))
        nav.contents aria-label="Contents" {
            ul {
                @for (id, title) in &sections {
                    // The name and the title come from the page's markup, so they are escaped already.
                    li { a href={ "#" (PreEscaped(id)) } { (PreEscaped(title)) } }
                }
            }
        }
        (PreEscaped(rest))
    }
}

/// Returns the name and the title of each section that has a title.
fn find_sections(body: &str) -> Vec<(&str, &str)> {
    let [begin, end] = TITLE;
    let sections = body.split(SECTION).skip(1);
    let named = sections.filter_map(|section| {
        let (id, rest) = section.split_once('"')?;
        let (_, title) = rest.split_once(begin)?;
        Some((id, title.split_once(end)?.0))
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(sections: &[(&str, &str)]) -> Markup {
        html! {
            h1 { "a page" }
            @for (id, title) in sections { section id=(id) { h2 { (title) } p { "text" } } }
        }
    }

    #[test]
    fn every_section_is_listed_once_in_front_of_the_first() {
        let page = insert_contents(body(&[("a", "One & two"), ("b", "Three")])).into_string();
        let list =
            "<ul><li><a href=\"#a\">One &amp; two</a></li><li><a href=\"#b\">Three</a></li></ul>";
        let place = page.find(list).expect(&page);
        assert!(place < page.find("<section").unwrap());
        assert!(place > page.find("</h1>").unwrap());
        assert_eq!(page.matches("<nav").count(), 1);
    }

    #[test]
    fn a_page_of_one_section_needs_no_list() {
        for sections in [&[][..], &[("a", "One")]] {
            let plain = body(sections).into_string();
            assert_eq!(insert_contents(body(sections)).into_string(), plain);
        }
    }
}
