//! Compiles the phrase lists of `lexicon/*.toml` into Rust constants, one module for each file.
//!
//! Fails if a list has no comment above it, contains a phrase twice, or contains a phrase that no text can match. The
//! TOML files are not read at run time.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use toml::{Table, Value};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=lexicon");
    let mut files: Vec<PathBuf> =
        fs::read_dir("lexicon")?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    files.sort();
    let mut code = String::new();
    let mut all = String::new();
    for file in &files {
        let topic = file.file_stem().and_then(|stem| stem.to_str()).ok_or("a file name is not UTF-8")?;
        let text = fs::read_to_string(file)?;
        writeln!(code, "pub(crate) mod {topic} {{\n    use crate::phrases::{{Phrases, phrases}};\n")?;
        for (name, value) in text.parse::<Table>()? {
            let list = phrases(&value).map_err(|problem| format!("{topic}.toml, {name}: {problem}"))?;
            let comment = comment(&text, &name).ok_or(format!("{topic}.toml, {name}: no comment above the list"))?;
            let constant = name.to_uppercase();
            writeln!(code, "    /// {comment}\n    pub(crate) const {constant}: Phrases = phrases!({list:?});")?;
            writeln!(all, "    (\"{topic}.{name}\", {topic}::{constant}),")?;
        }
        writeln!(code, "}}\n")?;
    }
    writeln!(code, "/// Every list with its name.\n#[cfg(test)]")?;
    writeln!(code, "pub(crate) const ALL: &[(&str, crate::phrases::Phrases)] = &[\n{all}];")?;
    fs::write(Path::new(&env::var("OUT_DIR")?).join("lexicon.rs"), code)?;
    Ok(())
}

/// Returns the phrases of a list in order. Fails if the value is not a list of distinct lower-case phrases.
fn phrases(value: &Value) -> Result<Vec<&str>, String> {
    let list = value.as_array().ok_or("not a list")?;
    let mut seen = BTreeSet::new();
    let phrases: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
    if phrases.is_empty() || phrases.len() < list.len() {
        return Err("not a list of phrases".to_owned());
    }
    for phrase in &phrases {
        if phrase.split(' ').any(str::is_empty) || phrase.to_lowercase() != *phrase {
            return Err(format!("\"{phrase}\" is not in lower case with single spaces"));
        }
        if !seen.insert(*phrase) {
            return Err(format!("\"{phrase}\" is listed twice"));
        }
    }
    Ok(phrases)
}

/// Returns the comment above a list, or `None` if it has no comment.
fn comment<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let head = format!("{name} = ");
    let mut above = None;
    for line in text.lines() {
        if line.starts_with(&head) {
            return above;
        }
        above = line.strip_prefix("# ");
    }
    None
}
