//! The files of a run: what is written before it, and what is read and found after it.
//!
//! Everything here blocks. Never follows a symbolic link that an agent left, nor waits for a pipe it made.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use model::execution::Artifact;
use rustix::fs::OFlags;

use super::{Attached, FOLDERS, Plan};
use crate::Failure;

/// How many artifacts are listed, and how deep they may lie.
const MAX_ARTIFACTS: usize = 1000;
const MAX_DEPTH: usize = 16;

/// How things were before the program ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Before {
    output: Option<Mark>,
}

/// By what a file that was written again is told from what it was.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mark {
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

/// What a program left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Of the output file; nothing where there is none to read.
    pub output: Option<Ends>,
    /// By their names inside [`Plan::output_dir`].
    pub artifacts: Vec<Artifact>,
}

/// The beginning and the end of a file, each cut at a line where it can be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    pub head: Vec<u8>,
    /// How many bytes between them were not read.
    pub missing: u64,
    pub tail: Vec<u8>,
}

/// Makes the folders and writes the input file, for our own account alone.
pub fn prepare(plan: &Plan) -> Result<Before, Failure> {
    for folder in FOLDERS.map(|name| plan.scratch.join(name)) {
        make_folder(&folder).map_err(|error| failed("make the folder", &folder, &error))?;
    }
    if let Some(file) = &plan.input_file {
        make_parent(&plan.scratch, &file.path)?;
        write(&file.path, file.text.as_bytes()).map_err(|error| failed("write the input file", &file.path, &error))?;
    }
    attach(&plan.scratch, &plan.files)?;
    let Some(output) = &plan.output_file else {
        return Ok(Before::default());
    };
    make_parent(&plan.scratch, output)?;
    Ok(Before { output: output.symlink_metadata().ok().map(|about| Mark::of(&about)) })
}

/// Writes the files that came with a request.
pub fn attach(scratch: &Path, files: &[Attached]) -> Result<(), Failure> {
    for file in files {
        let path = file.path(scratch);
        make_parent(scratch, &path)?;
        write(&path, &file.bytes).map_err(|error| failed("write the file", &path, &error))?;
    }
    Ok(())
}

/// Whether there is something to [`collect`]. Takes no time worth speaking of.
pub(crate) fn left_files(plan: &Plan) -> bool {
    plan.output_file.is_some() || fs::read_dir(&plan.output_dir).is_ok_and(|mut entries| entries.next().is_some())
}

/// Reads the output file, of which at most `limit` bytes are kept, and lists the artifacts.
pub fn collect(plan: &Plan, before: &Before, limit: usize) -> Result<Collected, Failure> {
    let output = match &plan.output_file {
        Some(path) => Some(read(plan, path, before, limit)?),
        None => None,
    };
    let mut artifacts = Vec::new();
    // A link to another folder is not the one we made.
    if plan.output_dir.symlink_metadata().is_ok_and(|about| about.is_dir()) {
        list(&plan.output_dir, "", 0, &mut artifacts);
    }
    artifacts.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(Collected { output, artifacts })
}

fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Only inside scratch: other folders are there, or wrong.
fn make_parent(scratch: &Path, path: &Path) -> Result<(), Failure> {
    match path.parent() {
        Some(folder) if folder.starts_with(scratch) => {
            make_folder(folder).map_err(|error| failed("make the folder", folder, &error))
        }
        Some(folder) if !folder.is_dir() => {
            Err(Failure::permanent(format!("there is no folder {} for the file {}", folder.display(), path.display())))
        }
        _ => Ok(()),
    }
}

/// A new file each time, so that neither a link nor old permissions matter.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(bytes)
}

fn read(plan: &Plan, path: &Path, before: &Before, limit: usize) -> Result<Ends, Failure> {
    let shown = path.display();
    let absent = || Failure::agent(format!("the agent wrote no output file ({shown})"));
    if path.starts_with(&plan.scratch) && !stays_inside(&plan.scratch, path) {
        return Err(absent());
    }
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let mut file = opened.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => absent(),
        _ => Failure::agent(format!("the agent's output file {shown} cannot be read: {error}")),
    })?;
    let about = file.metadata().map_err(|error| failed("read", path, &error))?;
    if !about.is_file() {
        return Err(Failure::agent(format!("the agent's output file {shown} is not a file")));
    }
    if before.output.as_ref() == Some(&Mark::of(&about)) {
        return Err(absent());
    }
    ends(&mut file, limit).map_err(|error| failed("read", path, &error))
}

/// Whether no folder on the way is a link to somewhere else.
fn stays_inside(scratch: &Path, path: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    match (real(scratch), path.parent().and_then(real)) {
        (Some(scratch), Some(folder)) => folder.starts_with(scratch),
        _ => false,
    }
}

fn ends(file: &mut File, limit: usize) -> io::Result<Ends> {
    let tail_limit = (limit / 2) as u64;
    let head_limit = limit as u64 - tail_limit;
    let mut head = Vec::new();
    let mut tail = Vec::new();
    file.take(head_limit).read_to_end(&mut head)?;
    let size = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(size.saturating_sub(tail_limit).max(head.len() as u64)))?;
    file.take(tail_limit).read_to_end(&mut tail)?;
    if (head.len() + tail.len()) as u64 >= size {
        head.append(&mut tail);
        return Ok(Ends { head, missing: 0, tail });
    }
    let blank = |bytes: &[u8]| bytes.iter().rposition(u8::is_ascii_whitespace);
    let line = head.iter().rposition(|byte| *byte == b'\n').or_else(|| blank(&head));
    head.truncate(line.map_or(head.len(), |at| at + 1));
    let missing = size - (head.len() + tail.len()) as u64;
    Ok(Ends { head, missing, tail })
}

/// What cannot be read is not listed: the run is not worse for it.
fn list(folder: &Path, prefix: &str, depth: usize, artifacts: &mut Vec<Artifact>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        if artifacts.len() >= MAX_ARTIFACTS {
            return;
        }
        let (Ok(name), Ok(about)) = (entry.file_name().into_string(), entry.metadata()) else {
            continue;
        };
        if about.is_file() {
            artifacts.push(Artifact { name: format!("{prefix}{name}"), size: about.len() });
        } else if about.is_dir() && depth < MAX_DEPTH {
            list(&entry.path(), &format!("{prefix}{name}/"), depth + 1, artifacts);
        }
    }
}

impl Mark {
    fn of(about: &fs::Metadata) -> Self {
        Self { inode: about.ino(), size: about.size(), changed: (about.ctime(), about.ctime_nsec()) }
    }
}

fn failed(what: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::system(format!("failed to {what} {}: {error}", path.display()))
}
