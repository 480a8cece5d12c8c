//! Faults of the database files, and the state of the files after a stop.

use std::path::Path;

use reqwest::StatusCode;
use serde_json::{Value, json};
use testkit::app::{Home, Server};

use crate::home;

/// Returns the titles of the tasks in a copy of the database file, without its WAL.
fn titles_in_copy(home: &Home) -> String {
    let copy = crate::home();
    std::fs::create_dir_all(copy.path()).unwrap();
    std::fs::copy(database(home), copy.path().join("adjutant.db")).unwrap();
    copy.run(&["tasks", "list"]).ok()
}

fn database(home: &Home) -> std::path::PathBuf {
    home.path().join("adjutant.db")
}

async fn add(server: &Server, title: &str) -> (StatusCode, Value) {
    let answer = server.post("/api/tasks", &json!({ "title": title })).await;
    (answer.status(), answer.json().await.unwrap())
}

#[tokio::test]
async fn the_database_file_is_complete_after_a_stop() {
    // OPS-4
    let home = home();
    for round in 0..4 {
        let mut server = home.serve();
        for task in ["a", "b", "c"] {
            assert_eq!(add(&server, &format!("{task}{round}")).await.0, StatusCode::CREATED);
        }
        assert_eq!(server.stop(), 0);
        let titles = titles_in_copy(&home);
        for task in ["a", "b", "c"] {
            assert!(titles.contains(&format!("{task}{round}")), "{titles}");
        }
    }
    home.run(&["tasks", "add", "by a command"]).ok();
    assert!(titles_in_copy(&home).contains("by a command"), "a command closes the database too");
}

#[tokio::test]
async fn a_removed_database_refuses_writes_and_names_the_cause() {
    // OPS-2, TASK-5
    let cause = "the database file was removed or replaced while adjutant uses it; restart adjutant";
    let wal = |home: &Home| home.path().join("adjutant.db-wal");
    for remove in [database, wal] {
        let home = home();
        let mut server = home.serve();
        assert_eq!(add(&server, "kept").await.0, StatusCode::CREATED);
        let health = server.get("/health").await;
        assert_eq!(health.status(), StatusCode::OK);
        remove_file(&remove(&home));
        let (status, problem) = add(&server, "refused").await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains(cause), "{problem}");
        let health = server.get("/health").await;
        assert_eq!(health.status(), StatusCode::SERVICE_UNAVAILABLE);
        let health: Value = health.json().await.unwrap();
        assert!(health["dependencies"]["database"]["error"].as_str().unwrap().contains(cause), "{health}");
        assert_eq!(server.get("/health/ready").await.status(), StatusCode::SERVICE_UNAVAILABLE);
        let command = home.run(&["tasks", "add", "refused too"]);
        assert!(command.code() != 0 && command.err().contains(cause), "{}", command.err());
        assert!(home.run(&["doctor"]).out().contains(cause));
        server.stop();
    }
}

fn remove_file(path: &Path) {
    std::fs::remove_file(path).unwrap();
}

/// Overwrites the headers of the pages that contain `text`. Returns their number.
fn damage_pages(path: &Path, text: &str) -> usize {
    let mut bytes = std::fs::read(path).unwrap();
    let contains = |page: &[u8]| page.windows(text.len()).any(|found| found == text.as_bytes());
    let damaged: Vec<_> = bytes.chunks_mut(4096).skip(1).filter(|page| contains(page)).collect();
    let count = damaged.len();
    for page in damaged {
        page[..16].fill(0xff);
    }
    std::fs::write(path, bytes).unwrap();
    count
}

#[tokio::test]
async fn a_damaged_database_is_reported_and_recovered() {
    // OPS-2, OPS-7
    const TASKS: u64 = 300;
    let home = home();
    let mut server = home.serve();
    for number in 0..TASKS {
        assert_eq!(add(&server, &format!("task {number:03}")).await.0, StatusCode::CREATED);
    }
    let refused = home.run(&["recover"]);
    assert!(refused.code() != 0 && refused.err().contains("in use"), "{}", refused.err());
    assert_eq!(server.stop(), 0);
    assert!(damage_pages(&database(&home), "task 150") > 0);
    let found = home.run(&["doctor"]).out();
    assert!(found.contains("database file") && found.contains("is damaged"), "{found}");
    let backup = home.run(&["backup", home.path().join("backup.jsonl").to_str().unwrap()]);
    assert!(backup.code() != 0 && backup.err().contains("the database file is damaged"), "{}", backup.err());
    let before = std::fs::read(database(&home)).unwrap();
    let file = home.path().join("recovered.jsonl");
    let recovered = home.run(&["recover", "--json", "--output", file.to_str().unwrap()]).ok();
    let recovered: Value = serde_json::from_str(&recovered).unwrap();
    let tables = recovered["tables"].as_array().unwrap();
    let of_tasks = tables.iter().find(|table| table["table"] == "tasks").unwrap();
    let saved = of_tasks["saved"].as_u64().unwrap();
    assert!((TASKS - 40..TASKS).contains(&saved), "{of_tasks}");
    assert_eq!(saved + of_tasks["lost"].as_u64().unwrap(), TASKS);
    assert_eq!(std::fs::read(database(&home)).unwrap(), before, "the damaged file is unchanged");
    let fresh = crate::home();
    fresh.run(&["restore", "--yes", file.to_str().unwrap()]).ok();
    assert!(fresh.run(&["doctor"]).out().contains("its structure is sound"));
    let listed = fresh.run(&["tasks", "list", "--quiet", "--limit", "1000"]).ok();
    assert_eq!(listed.lines().count() as u64, saved);
}

/// A small file system in memory, mounted on a directory until it is dropped.
struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    /// Mounts the file system. Prints the reason and returns `None` if this system does not allow that.
    #[expect(clippy::print_stderr, reason = "a skipped test names the reason")]
    fn mount(directory: &'a Path) -> Option<Self> {
        let mut mount = std::process::Command::new("mount");
        let mounted = mount.args(["-t", "tmpfs", "-o", "size=6m,mode=700", "tmpfs"]).arg(directory).output();
        match mounted {
            Ok(done) if done.status.success() => Some(Self(directory)),
            Ok(done) => {
                eprintln!("skipped: cannot mount a small disk: {}", String::from_utf8_lossy(&done.stderr));
                None
            }
            Err(error) => {
                eprintln!("skipped: cannot mount a small disk: {error}");
                None
            }
        }
    }

    fn filler(&self) -> std::path::PathBuf {
        self.0.join("filler")
    }

    /// Uses the rest of the disk.
    fn fill(&self) {
        use std::io::Write;
        let mut file = std::fs::File::create(self.filler()).unwrap();
        while file.write_all(&[1; 4096]).is_ok() {}
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").args(["--lazy"]).arg(self.0).status();
    }
}

#[tokio::test]
async fn a_full_disk_is_named_and_the_server_recovers() {
    // OPS-2, TASK-5
    let home = home();
    let Some(disk) = SmallDisk::mount(home.path()) else { return };
    let mut server = home.serve();
    assert_eq!(add(&server, "before").await.0, StatusCode::CREATED);
    disk.fill();
    // The first writes may use free pages of the files.
    let mut refused = None;
    for number in 0..2000 {
        let (status, problem) = add(&server, &format!("task {number} {}", "x".repeat(150))).await;
        if status != StatusCode::CREATED {
            refused = Some((status, problem));
            break;
        }
    }
    let (status, problem) = refused.expect("the disk is full");
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("the disk is full"), "{problem}");
    let health = server.get("/health").await;
    assert_eq!(health.status(), StatusCode::SERVICE_UNAVAILABLE);
    let health: Value = health.json().await.unwrap();
    assert!(health["dependencies"]["database"]["error"].as_str().unwrap().contains("the disk is full"), "{health}");
    let command = home.run(&["tasks", "add", "refused too"]);
    assert!(command.code() != 0 && command.err().contains("the disk is full"), "{}", command.err());
    assert_eq!(server.get("/api/tasks").await.status(), StatusCode::OK, "reads go on");
    std::fs::remove_file(disk.filler()).unwrap();
    assert_eq!(add(&server, "after").await.0, StatusCode::CREATED);
    assert_eq!(server.get("/health/ready").await.status(), StatusCode::OK);
    assert_eq!(server.stop(), 0);
    drop(disk);
}
