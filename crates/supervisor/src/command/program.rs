//! Where a program is.
//!
//! Only looks; never runs anything.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::Failure;

/// The program's absolute path. A name without a slash is looked up in `path`; a relative path counts from where
/// adjutant runs, `~/` from `home`.
pub(crate) fn find(program: &str, path: &str, home: Option<&str>) -> Result<PathBuf, Failure> {
    if !program.contains('/') {
        return on_path(program, path).ok_or_else(|| {
            let message = format!("the program '{program}' is not on the PATH of the agent ({path})");
            Failure::permanent(format!("{message}: install it, or give its full path as executable_path"))
        });
    }
    let found = absolute(program, home)?;
    let shown = found.display();
    match found.metadata() {
        Err(error) => Err(Failure::permanent(format!("the program {shown} cannot be run: {error}"))),
        Ok(about) if about.is_dir() => Err(Failure::permanent(format!("the program {shown} is a directory"))),
        Ok(_) if !is_executable(&found) => {
            Err(Failure::permanent(format!("the program {shown} is not executable: chmod +x makes it so")))
        }
        Ok(_) => Ok(found),
    }
}

/// Relative entries are left out: what runs must not depend on where it runs.
pub(crate) fn on_path(name: &str, path: &str) -> Option<PathBuf> {
    let folders = path.split(':').map(Path::new).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(name)).find(|candidate| is_executable(candidate))
}

pub(crate) fn absolute(path: &str, home: Option<&str>) -> Result<PathBuf, Failure> {
    let path = match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => Path::new(home).join(rest),
        _ => PathBuf::from(path),
    };
    std::path::absolute(&path).map_err(|error| Failure::system(format!("{} is no path: {error}", path.display())))
}

fn is_executable(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}
