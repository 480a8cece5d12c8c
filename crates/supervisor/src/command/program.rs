//! Finds the program of an agent. Never runs anything.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::RunFailure;

/// Returns the absolute path of a program. A name without a slash is searched in the absolute directories of `path`. A
/// relative path starts at the working directory of adjutant, and `~/` at `home`. Fails permanently if the program is
/// not found, is a directory or is not executable.
pub(crate) fn find(program: &str, path: &str, home: Option<&str>) -> Result<PathBuf, RunFailure> {
    if !program.contains('/') {
        return on_path(program, path).ok_or_else(|| {
            let message = format!("the program '{program}' is not on the PATH of the agent ({path})");
            RunFailure::permanent(format!("{message}: install it, or give its full path as executable_path"))
        });
    }
    let found = absolute(program, home)?;
    let shown = found.display();
    match found.metadata() {
        Err(error) => Err(RunFailure::permanent(format!("the program {shown} cannot be run: {error}"))),
        Ok(metadata) if metadata.is_dir() => Err(RunFailure::permanent(format!("the program {shown} is a directory"))),
        Ok(_) if !is_executable(&found) => Err(RunFailure::permanent(format!(
            "the program {shown} is not executable: make it executable with chmod +x"
        ))),
        Ok(_) => Ok(found),
    }
}

/// Returns the path of the first executable file with this name in the directories of `path`, or `None` if there is
/// none. Relative entries are ignored, because the result must not depend on the working directory.
pub(crate) fn on_path(name: &str, path: &str) -> Option<PathBuf> {
    let dirs = path.split(':').map(Path::new).filter(|dir| dir.is_absolute());
    dirs.map(|dir| dir.join(name)).find(|candidate| is_executable(candidate))
}

/// Returns the absolute path. `~/` stands for `home`; if `home` is unknown, `~` is an ordinary name. The path does not
/// have to exist. Fails with a system failure if the path is empty or the working directory is unknown.
pub(crate) fn absolute(path: &str, home: Option<&str>) -> Result<PathBuf, RunFailure> {
    let path = match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => Path::new(home).join(rest),
        _ => PathBuf::from(path),
    };
    std::path::absolute(&path)
        .map_err(|error| RunFailure::system(format!("{} is not a valid path: {error}", path.display())))
}

fn is_executable(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}
