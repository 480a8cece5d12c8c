//! The files of a run: input files before it, output files and artifacts after it.
//!
//! All functions block. They never follow a symbolic link that an agent created, and never wait for a named pipe.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use model::execution::Artifact;
use rustix::fs::OFlags;

use super::{AttachedFile, CommandPlan, SCRATCH_DIRS};
use crate::RunFailure;

/// The maximum number of listed artifacts.
const MAX_ARTIFACTS: usize = 1000;
/// The maximum depth of directories that are searched for artifacts.
const MAX_DEPTH: usize = 16;

/// The state of the output file before the program ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilesBefore {
    output: Option<FileStamp>,
}

/// Identifies a version of a file, to detect that the program has written it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FileStamp {
    inode: u64,
    size: u64,
    /// The time of the last change of the inode, in seconds and nanoseconds.
    changed: (i64, i64),
}

/// The output file and the artifacts of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CollectedFiles {
    /// The content of the output file. `None` if the agent has no output file.
    pub output: Option<FileExcerpt>,
    /// Artifacts, with names relative to [`CommandPlan::output_dir`].
    pub artifacts: Vec<Artifact>,
}

/// The head and the tail of a file. The head ends after a line or a word, if it has one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileExcerpt {
    pub head: Vec<u8>,
    /// The number of bytes between head and tail.
    pub missing: u64,
    pub tail: Vec<u8>,
}

/// Creates the directories and writes the input file and the attached files. Only the current user can read them.
/// Existing files are replaced. Returns the state of the output file before the run. Fails with a system failure if a
/// directory or a file cannot be written. Fails permanently if the directory of the input or output file is outside of
/// the scratch directory and does not exist.
pub fn prepare_files(plan: &CommandPlan) -> Result<FilesBefore, RunFailure> {
    for dir in SCRATCH_DIRS.map(|name| plan.scratch.join(name)) {
        create_dir(&dir).map_err(|error| failed("create the directory", &dir, &error))?;
    }
    if let Some(file) = &plan.input_file {
        create_parent(&plan.scratch, &file.path)?;
        write(&file.path, file.text.as_bytes()).map_err(|error| failed("write the input file", &file.path, &error))?;
    }
    write_attached_files(&plan.scratch, &plan.files)?;
    let Some(output) = &plan.output_file else {
        return Ok(FilesBefore::default());
    };
    create_parent(&plan.scratch, output)?;
    Ok(FilesBefore { output: output.symlink_metadata().ok().map(|metadata| FileStamp::new(&metadata)) })
}

/// Writes the attached files of a request to the directory `files` in `scratch`, readable only by this user. Creates
/// the directory. Existing files are replaced. Fails with a system failure if a file cannot be written.
pub fn write_attached_files(scratch: &Path, files: &[AttachedFile]) -> Result<(), RunFailure> {
    for file in files {
        let path = file.path(scratch);
        create_parent(scratch, &path)?;
        write(&path, &file.bytes).map_err(|error| failed("write the file", &path, &error))?;
    }
    Ok(())
}

/// Returns true if [`collect_files`] may find something. It is fast enough to run on an async thread.
pub(crate) fn has_files_to_collect(plan: &CommandPlan) -> bool {
    plan.output_file.is_some() || fs::read_dir(&plan.output_dir).is_ok_and(|mut entries| entries.next().is_some())
}

/// Reads at most `limit` bytes of the output file and lists the artifacts, sorted by name. A plan without an output
/// file gives none. Lists at most [`MAX_ARTIFACTS`] files, and none if the directory was replaced by a link. Fails if
/// the agent has not written its output file, or if the file cannot be read.
pub fn collect_files(plan: &CommandPlan, before: &FilesBefore, limit: usize) -> Result<CollectedFiles, RunFailure> {
    let output = match &plan.output_file {
        Some(path) => Some(read_output(plan, path, before, limit)?),
        None => None,
    };
    let mut artifacts = Vec::new();
    // The agent may have replaced the directory by a link to another one.
    if plan.output_dir.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
        list_artifacts(&plan.output_dir, "", 0, &mut artifacts);
    }
    artifacts.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(CollectedFiles { output, artifacts })
}

fn create_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Creates the parent directory of a file inside the scratch directory. Does not create a parent outside of it. Fails
/// with a system failure if it cannot be created, and permanently if a parent outside does not exist.
fn create_parent(scratch: &Path, path: &Path) -> Result<(), RunFailure> {
    match path.parent() {
        Some(parent) if parent.starts_with(scratch) => {
            create_dir(parent).map_err(|error| failed("create the directory", parent, &error))
        }
        Some(parent) if !parent.is_dir() => {
            let message = format!("the directory of the file {} does not exist", path.display());
            Err(RunFailure::permanent(message))
        }
        _ => Ok(()),
    }
}

/// Writes a new file. Removes an existing one first, so that links and old permissions have no effect.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(bytes)
}

/// Returns the output file, or its head and tail if it has more than `limit` bytes.
///
/// Fails if the file does not exist, if the agent has not written it since `before`, if it is a link, or if it is not a
/// regular file or cannot be read. A file inside the scratch directory counts as missing if a link leads its directory
/// out of there.
fn read_output(plan: &CommandPlan, path: &Path, before: &FilesBefore, limit: usize) -> Result<FileExcerpt, RunFailure> {
    let shown = path.display();
    let absent = || RunFailure::agent(format!("the agent wrote no output file ({shown})"));
    if path.starts_with(&plan.scratch) && !stays_inside(&plan.scratch, path) {
        return Err(absent());
    }
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let mut file = opened.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => absent(),
        _ => RunFailure::agent(format!("the agent's output file {shown} cannot be read: {error}")),
    })?;
    let metadata = file.metadata().map_err(|error| failed("read", path, &error))?;
    if !metadata.is_file() {
        return Err(RunFailure::agent(format!("the agent's output file {shown} is not a file")));
    }
    if before.output.as_ref() == Some(&FileStamp::new(&metadata)) {
        return Err(absent());
    }
    read_excerpt(&mut file, limit).map_err(|error| failed("read", path, &error))
}

/// Returns true if the real parent directory of the file is inside the scratch directory. Returns false if one of them
/// does not exist.
fn stays_inside(scratch: &Path, path: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    match (real(scratch), path.parent().and_then(real)) {
        (Some(scratch), Some(parent)) => parent.starts_with(scratch),
        _ => false,
    }
}

/// Reads the head and the tail of a file, together at most `limit` bytes. A file that fits in the limit is read
/// completely, into the head. Otherwise the head is cut after its last line, or after its last word if it has only one
/// line. A head without a space and the tail are not cut. Fails if the file cannot be read.
fn read_excerpt(file: &mut File, limit: usize) -> io::Result<FileExcerpt> {
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
        return Ok(FileExcerpt { head, missing: 0, tail });
    }
    let blank = |bytes: &[u8]| bytes.iter().rposition(u8::is_ascii_whitespace);
    let line = head.iter().rposition(|byte| *byte == b'\n').or_else(|| blank(&head));
    head.truncate(line.map_or(head.len(), |at| at + 1));
    let missing = size - (head.len() + tail.len()) as u64;
    Ok(FileExcerpt { head, missing, tail })
}

/// Adds the regular files in a directory and its subdirectories to `artifacts`, until it has [`MAX_ARTIFACTS`].
/// `prefix` is the path of the directory with a slash at the end, and `depth` its depth, at most [`MAX_DEPTH`]. Links,
/// special files and names that are not UTF-8 are ignored. Entries that cannot be read are left out: they do not make
/// the run fail.
fn list_artifacts(dir: &Path, prefix: &str, depth: usize, artifacts: &mut Vec<Artifact>) {
    let Ok(entries) = fs::read_dir(dir) else {
        return;
    };
    for entry in entries.flatten() {
        if artifacts.len() >= MAX_ARTIFACTS {
            return;
        }
        let (Ok(name), Ok(metadata)) = (entry.file_name().into_string(), entry.metadata()) else {
            continue;
        };
        if metadata.is_file() {
            artifacts.push(Artifact { name: format!("{prefix}{name}"), size: metadata.len() });
        } else if metadata.is_dir() && depth < MAX_DEPTH {
            list_artifacts(&entry.path(), &format!("{prefix}{name}/"), depth + 1, artifacts);
        }
    }
}

impl FileStamp {
    fn new(metadata: &fs::Metadata) -> Self {
        Self { inode: metadata.ino(), size: metadata.size(), changed: (metadata.ctime(), metadata.ctime_nsec()) }
    }
}

fn failed(action: &str, path: &Path, error: &io::Error) -> RunFailure {
    RunFailure::system(format!("failed to {action} {}: {error}", path.display()))
}
