// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds out from a crate's files which of its modules use which others.
//!
//! The files are split into tokens, so comments and string literals do not count. A macro's arguments count like all
//! other code: an operand of assembly (`sym crate::exits::...`) is a use. A path counts if it begins with `crate`,
//! `$crate`, `self`, `super`, or with a module that the file declares.
//!
//! This method has limits. A call from assembly by a symbol's name, which is how assembly calls the entry points, is
//! not found. A call through a function pointer is not found either. Ignoring such a call is intended, because it is a
//! hook. A re-exported name counts as a use of the module that re-exports it. A module inside a file is part of the
//! file.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A module, named by its path inside the crate, such as `exits::wfx`. The root's path is empty.
pub type Module = String;

/// The modules of a crate and their uses of each other.
#[derive(Debug, Default)]
pub struct Uses {
    /// Every module that has a file.
    pub modules: BTreeSet<Module>,
    /// Pairs of a module and a module that it uses, each with one path through which the first uses the second.
    pub arrows: BTreeMap<(Module, Module), String>,
}

/// Reads the crate that consists of `files`, each given by its path below `src` and its text.
pub fn read(files: &BTreeMap<String, String>) -> Uses {
    let streams: BTreeMap<Module, TokenStream> = files
        .iter()
        .map(|(path, text)| {
            let stream = text.parse();
            let stream = stream.unwrap_or_else(|error| panic!("{path}: {error}"));
            (module_of(path), stream)
        })
        .collect();
    let modules: BTreeSet<Module> = streams.keys().cloned().collect();
    let mut macros = BTreeMap::new();
    for (module, stream) in &streams {
        for name in exported_macros(stream) {
            macros.insert(name, module.clone());
        }
    }
    let mut uses = Uses::default();
    for (module, stream) in &streams {
        let mut reader = Reader {
            module,
            modules: &modules,
            paths: Vec::new(),
        };
        reader.stream(stream.clone());
        for path in reader.paths {
            let target = target(&path, &modules, &macros);
            if target != *module {
                let arrow = (module.clone(), target);
                uses.arrows.entry(arrow).or_insert(path.join("::"));
            }
        }
    }
    uses.modules = modules;
    uses
}

/// Returns the module whose file is at `path`.
fn module_of(path: &str) -> Module {
    let path = path.strip_suffix(".rs").unwrap_or(path);
    let path = path.strip_suffix("/mod").unwrap_or(path);
    match path {
        "main" | "lib" => Module::new(),
        _ => path.replace('/', "::"),
    }
}

/// Returns the macros that a file exports. The macros' paths begin at the crate's root.
fn exported_macros(stream: &TokenStream) -> Vec<String> {
    let tokens: Vec<TokenTree> = stream.clone().into_iter().collect();
    let mut exported = false;
    let mut names = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) if group.stream().to_string() == "macro_export" => {
                exported = true;
            }
            TokenTree::Ident(ident) if ident == "macro_rules" && exported => {
                names.extend(tokens.get(at + 2).map(ToString::to_string));
                exported = false;
            }
            _ => {}
        }
    }
    names
}

/// Returns the module that a path leads to: the longest part of the path that is a module, or the module in which the
/// named macro is defined.
fn target(
    path: &[String],
    modules: &BTreeSet<Module>,
    macros: &BTreeMap<String, Module>,
) -> Module {
    if let [name] = path
        && let Some(module) = macros.get(name)
    {
        return module.clone();
    }
    let parts = (0..=path.len())
        .rev()
        .map(|length| path[..length].join("::"));
    let mut parts = parts.filter(|part| modules.contains(part));
    parts.next().unwrap_or_default()
}

/// Collects the paths in one file, as seen from the crate's root.
struct Reader<'a> {
    module: &'a str,
    modules: &'a BTreeSet<Module>,
    paths: Vec<Vec<String>>,
}

impl Reader<'_> {
    fn stream(&mut self, stream: TokenStream) {
        let tokens: Vec<TokenTree> = stream.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            let begins = at == 0 || !is_separator(&tokens, at - 1);
            let base = match &tokens[at] {
                TokenTree::Ident(ident) if begins => self.base(&ident.to_string()),
                TokenTree::Group(group) => {
                    self.stream(group.stream());
                    None
                }
                _ => None,
            };
            match base {
                Some(base) if separator_follows(&tokens, at) => {
                    at = self.path(&tokens, at + 3, base);
                }
                _ => at += 1,
            }
        }
    }

    /// Resolves the first word of a path, from the root on.
    fn base(&self, word: &str) -> Option<Vec<String>> {
        let here: Vec<String> = self.module.split("::").map(str::to_owned).collect();
        let child = match self.module {
            "" => word.to_owned(),
            module => format!("{module}::{word}"),
        };
        match word {
            "crate" => Some(Vec::new()),
            "self" => Some(here),
            "super" => Some(here[..here.len() - 1].to_vec()),
            _ if self.modules.contains(&child) => {
                Some(child.split("::").map(str::to_owned).collect())
            }
            _ => None,
        }
    }

    /// Continues to read a path after a `::`. Returns the place where the path ends.
    fn path(&mut self, tokens: &[TokenTree], mut at: usize, mut path: Vec<String>) -> usize {
        loop {
            match tokens.get(at) {
                Some(TokenTree::Ident(ident)) if ident == "super" => {
                    path.pop();
                }
                Some(TokenTree::Ident(ident)) if ident == "self" => {}
                Some(TokenTree::Ident(ident)) => path.push(ident.to_string()),
                Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                    self.tree(group.stream(), &path);
                    return at + 1;
                }
                // A glob, generic arguments, or the end of the path.
                _ => break,
            }
            if !separator_follows(tokens, at) {
                at += 1;
                break;
            }
            at += 3;
        }
        self.paths.push(path);
        at
    }

    /// Reads the paths in a `use` tree in braces.
    fn tree(&mut self, stream: TokenStream, base: &[String]) {
        let tokens: Vec<TokenTree> = stream.into_iter().collect();
        let comma = |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.as_char() == ',');
        for part in tokens.split(comma).filter(|part| !part.is_empty()) {
            self.path(part, 0, base.to_vec());
        }
    }
}

fn is_colon(token: Option<&TokenTree>) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == ':')
}

/// Whether `::` follows the token at `at`.
fn separator_follows(tokens: &[TokenTree], at: usize) -> bool {
    is_colon(tokens.get(at + 1)) && is_colon(tokens.get(at + 2))
}

/// Whether the token at `at` is the second half of a `::`.
fn is_separator(tokens: &[TokenTree], at: usize) -> bool {
    at > 0 && is_colon(tokens.get(at)) && is_colon(tokens.get(at - 1))
}
