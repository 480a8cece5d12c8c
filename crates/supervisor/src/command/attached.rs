//! Files that came with a request: they are put into a folder of their own, under names that lead nowhere else.

use std::path::{Path, PathBuf};

use model::said::{Content, parts_of};
use serde_json::Value;

/// Where they are, in the scratch folder.
pub(super) const FOLDER: &str = "files";
/// Longer names are cut; file systems take 255 bytes.
const LONGEST: usize = 200;

/// A file that came with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached {
    pub name: String,
    pub bytes: Vec<u8>,
}

/// The files of a message, no two under the same name. What is no message has none.
pub fn attached(message: Option<&Value>) -> Vec<Attached> {
    let parts = message.and_then(|message| parts_of(message).ok()).unwrap_or_default();
    let mut files: Vec<Attached> = Vec::new();
    for part in parts {
        let Content::Bytes(bytes) = part.content else { continue };
        let number = files.len() + 1;
        let mut name = safe(part.name.as_deref().unwrap_or_default());
        if name.is_empty() {
            name = format!("file-{number}");
        }
        if files.iter().any(|file| file.name == name) {
            name = format!("{number}-{name}");
        }
        files.push(Attached { name, bytes });
    }
    files
}

impl Attached {
    pub(super) fn path(&self, scratch: &Path) -> PathBuf {
        scratch.join(FOLDER).join(&self.name)
    }
}

/// The last part of a name, whatever system it was made for, without what is odd in it.
fn safe(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    // Neither hidden nor an option.
    let last = last.trim().trim_start_matches(['.', '-', ' ']);
    let mut name: String = last.chars().map(|c| if c.is_control() { '_' } else { c }).collect();
    if name.len() > LONGEST {
        // Its end tells what it is.
        let from = (name.len() - LONGEST..).find(|at| name.is_char_boundary(*at)).unwrap_or(0);
        name = name[from..].trim_start_matches(['.', '-', ' ']).to_owned();
    }
    name
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_lead_nowhere_else() {
        // A2A-1
        let long = format!("{}.txt", "ü".repeat(300));
        let names =
            ["a.txt", "../../etc/passwd", "C:\\x\\b.txt", "..", ".hidden", "-rf", "", "a.txt", "a\n\0b", "x/", &long];
        let parts: Vec<_> = names.iter().map(|name| json!({"raw": "AA==", "filename": name})).collect();
        let mut parts = Value::from(parts);
        parts.as_array_mut().unwrap().extend([json!({"raw": ""}), json!({"text": "no file"})]);
        let message = json!({ "parts": parts });
        let names: Vec<_> = attached(Some(&message)).into_iter().map(|file| file.name).collect();
        let (last, rest) = names.split_at(10);
        assert_eq!(
            last,
            ["a.txt", "passwd", "b.txt", "file-4", "hidden", "rf", "file-7", "8-a.txt", "a__b", "file-10"],
        );
        assert!(rest[0].ends_with("ü.txt") && rest[0].len() <= LONGEST, "{}", rest[0]);
        assert_eq!(rest[1], "file-12");
        assert!(attached(None).is_empty() && attached(Some(&json!({"parts": 7}))).is_empty());
    }
}
