//! Files that are attached to a request. They are written to a separate directory, with names that cannot leave it.

use std::path::{Path, PathBuf};

use model::output::{PartContent, parse_message_parts};
use serde_json::Value;

/// The directory of attached files, relative to the scratch directory.
pub(super) const ATTACHED_DIR: &str = "files";
/// Longer file names are shortened. File systems accept 255 bytes.
const MAX_NAME_BYTES: usize = 200;

/// A file that is attached to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachedFile {
    pub name: String,
    pub bytes: Vec<u8>,
}

/// Returns the files of an A2A message, with safe names, in order. Only parts with bytes are files. A file without a
/// usable name is called `file-N`, and a repeated name gets the prefix `N-`, where N is the position among the files. A
/// value that is not a message has no files.
pub fn attached_files(message: Option<&Value>) -> Vec<AttachedFile> {
    let parts = message.and_then(|message| parse_message_parts(message).ok()).unwrap_or_default();
    let mut files: Vec<AttachedFile> = Vec::new();
    for part in parts {
        let PartContent::Bytes(bytes) = part.content else { continue };
        let number = files.len() + 1;
        let mut name = safe_name(part.name.as_deref().unwrap_or_default());
        if name.is_empty() {
            name = format!("file-{number}");
        }
        if files.iter().any(|file| file.name == name) {
            name = format!("{number}-{name}");
        }
        files.push(AttachedFile { name, bytes });
    }
    files
}

impl AttachedFile {
    pub(super) fn path(&self, scratch: &Path) -> PathBuf {
        scratch.join(ATTACHED_DIR).join(&self.name)
    }
}

/// Returns the last component of a Unix or Windows path, without spaces around it and without leading dots and hyphens.
/// Control characters become `_`. A long name keeps only its last [`MAX_NAME_BYTES`]. The result may be empty.
fn safe_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    // The name must not be hidden and must not look like an option.
    let last = last.trim().trim_start_matches(['.', '-', ' ']);
    let mut name: String = last.chars().map(|c| if c.is_control() { '_' } else { c }).collect();
    if name.len() > MAX_NAME_BYTES {
        // Keep the end, because it contains the extension.
        let from = (name.len() - MAX_NAME_BYTES..).find(|at| name.is_char_boundary(*at)).unwrap_or(0);
        name = name[from..].trim_start_matches(['.', '-', ' ']).to_owned();
    }
    name
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn attached_names_cannot_leave_the_directory() {
        // A2A-1
        let long = format!("{}.txt", "ü".repeat(300));
        let names =
            ["a.txt", "../../etc/passwd", "C:\\x\\b.txt", "..", ".hidden", "-rf", "", "a.txt", "a\n\0b", "x/", &long];
        let parts: Vec<_> = names.iter().map(|name| json!({"raw": "AA==", "filename": name})).collect();
        let mut parts = Value::from(parts);
        parts.as_array_mut().unwrap().extend([json!({"raw": ""}), json!({"text": "no file"})]);
        let message = json!({ "parts": parts });
        let names: Vec<_> = attached_files(Some(&message)).into_iter().map(|file| file.name).collect();
        let (last, rest) = names.split_at(10);
        assert_eq!(
            last,
            ["a.txt", "passwd", "b.txt", "file-4", "hidden", "rf", "file-7", "8-a.txt", "a__b", "file-10"],
        );
        assert!(rest[0].ends_with("ü.txt") && rest[0].len() <= MAX_NAME_BYTES, "{}", rest[0]);
        assert_eq!(rest[1], "file-12");
        assert!(attached_files(None).is_empty() && attached_files(Some(&json!({"parts": 7}))).is_empty());
    }
}
