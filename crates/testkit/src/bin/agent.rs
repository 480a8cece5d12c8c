//! A scripted command-line agent that misbehaves: it hangs, escapes its process group, uses CPU time or memory, floods its
//! output, crashes or asks questions. The command is in its arguments, or in its input with `obey`. It does not depend on
//! adjutant.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test double of an external program")]

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        // Starts a child in its own session, and hangs.
        ["runaway", file] => {
            ignore_signals();
            start_self(&["stubborn", file], true).wait().unwrap();
        }
        // Leaves an orphaned process behind.
        ["daemon", file] => {
            start_self(&["between", file], true).wait().unwrap();
            wait_for(file);
        }
        // Like `daemon`, with an empty environment.
        ["hidden-daemon", file] => {
            start_self(&["between", file], false).wait().unwrap();
            wait_for(file);
        }
        ["hidden-runaway", file] => {
            ignore_signals();
            start_self(&["between", file], false).wait().unwrap();
            std::thread::sleep(Duration::from_secs(600));
        }
        ["between", file] => drop(start_self(&["stubborn", file], true)),
        ["stubborn", file] => {
            rustix::process::setsid().unwrap();
            run_forever(file);
        }
        // A fork bomb.
        ["bomb", file] => {
            fs::write(file, std::process::id().to_string()).unwrap();
            loop {
                let _ = Command::new("/bin/sleep").arg("100").spawn();
            }
        }
        ["burn", ms] => burn(ms),
        ["burn-below", ms] => {
            burn(ms);
            assert!(start_self(&["burn", ms], true).wait().unwrap().success());
        }
        // Uses CPU time in an orphan. Only the process that adopts it can account for it.
        ["burn-orphan", ms, file] => {
            start_self(&["burn-between", ms, file], true).wait().unwrap();
            wait_for(file);
        }
        ["burn-between", ms, file] => drop(start_self(&["burn-then-write", ms, file], true)),
        ["burn-then-write", ms, file] => {
            burn(ms);
            fs::write(file, "").unwrap();
        }
        ["hog", megabytes] => {
            let memory = vec![1_u8; megabytes.parse::<usize>().unwrap() << 20];
            std::thread::sleep(Duration::from_millis(600));
            assert_eq!(std::hint::black_box(memory).last(), Some(&1));
        }
        // Sends a request over a Unix socket or to a TCP address, and prints the first line of the response.
        ["request", address, path] => println!("{}", request(address, path)),
        // Like `request`, by a process that has left its parent and its session.
        ["request-detached", address, path, file] => {
            start_self(&["request-between", address, path, file], true).wait().unwrap();
            wait_for(file);
            println!("{}", fs::read_to_string(file).unwrap());
        }
        ["request-between", address, path, file] => drop(start_self(&["request-to", address, path, file], true)),
        ["request-to", address, path, file] => {
            rustix::process::setsid().unwrap();
            // The parent has ended.
            while rustix::process::getppid().is_some_and(is_between) {
                std::thread::sleep(Duration::from_millis(5));
            }
            let partial = format!("{file}.half");
            fs::write(&partial, request(address, path)).unwrap();
            fs::rename(partial, file).unwrap();
        }
        // Like `request`, with an empty environment.
        ["request-hidden", address, path] => {
            start_self(&["request", address, path], false).wait().unwrap();
        }
        ["write", file, megabytes] => {
            let mut out = fs::File::create(file).unwrap();
            for _ in 0..megabytes.parse::<u32>().unwrap() {
                out.write_all(&[7; 1 << 20]).unwrap();
            }
            out.sync_all().unwrap();
        }
        ["obey"] => return obey(None),
        ["obey", lock] => return obey(Some(lock)),
        ref command => return run_command(command),
    }
    ExitCode::SUCCESS
}

/// Sends a GET request and returns the first line of the response.
fn request(address: &str, path: &str) -> String {
    let mut response = String::new();
    let text = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    if address.starts_with('/') {
        let mut stream = std::os::unix::net::UnixStream::connect(address).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        stream.read_to_string(&mut response).unwrap();
    } else {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        stream.read_to_string(&mut response).unwrap();
    }
    response.lines().next().unwrap_or_default().to_owned()
}

/// Returns true if the process runs `request-between`.
fn is_between(pid: rustix::process::Pid) -> bool {
    let arguments = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
    arguments.split(|byte| *byte == 0).nth(1) == Some(b"request-between")
}

/// Prints numbered lines of 100 bytes.
fn flood(lines: u64) {
    let mut out = std::io::BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
    for line in 0..lines {
        writeln!(out, "{line:>11} {:x<87}", "").unwrap();
    }
    out.flush().unwrap();
}

/// Runs the command in the input, optionally under a lock.
fn obey(lock: Option<&str>) -> ExitCode {
    let mut command = String::new();
    std::io::stdin().read_to_string(&mut command).unwrap();
    let _lock = lock.map(hold_lock);
    run_command(&command.split_whitespace().collect::<Vec<_>>())
}

fn run_command(command: &[&str]) -> ExitCode {
    match *command {
        ["echo", ref words @ ..] => println!("{}", words.join(" ")),
        ["flood", lines] => flood(lines.parse().unwrap()),
        ["hang"] => std::thread::sleep(Duration::from_secs(600)),
        ["ignore-term"] => {
            ignore_signals();
            loop {
                std::thread::sleep(Duration::from_secs(60));
            }
        }
        // Ends, but its child continues.
        ["fork-away"] => {
            let mut child = Command::new("/usr/bin/setsid");
            drop(child.args(["/bin/sh", "-c", "trap '' TERM HUP; sleep 600"]).spawn().unwrap());
            println!("left");
        }
        ["crash"] => std::process::abort(),
        ["exit", code] => return ExitCode::from(code.parse::<u8>().unwrap()),
        ["slow", ms] => {
            println!("begun");
            std::thread::sleep(Duration::from_millis(ms.parse().unwrap()));
            println!("done");
        }
        ["bad-json"] => println!("{{\"jsonrpc\": \"2.0\", \"id\": 1, \"result\": "),
        // Asks a question without a line break, and prints the answer if one arrives.
        ["ask"] => {
            print!("What now? ");
            std::io::stdout().flush().unwrap();
            let mut answer = String::new();
            if std::io::stdin().read_line(&mut answer).unwrap() > 0 {
                println!("{}", answer.trim());
            }
        }
        // Prints the current time in microseconds.
        ["now"] => println!("{}", std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_micros()),
        // Prints the time repeatedly.
        ["ticks", count, ms] => {
            for _ in 0..count.parse::<u32>().unwrap() {
                println!("{}", std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_micros());
                std::thread::sleep(Duration::from_millis(ms.parse().unwrap()));
            }
        }
        _ => return ExitCode::from(2),
    }
    ExitCode::SUCCESS
}

/// Holds a lock until all processes of this run have ended. If another run holds it, appends a line to `LOCK.broken`.
fn hold_lock(lock: &str) -> fs::File {
    use rustix::fs::FlockOperation;
    let file = fs::File::create(lock).unwrap();
    if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        let line = format!("{} at {:?}\n", std::process::id(), std::time::SystemTime::UNIX_EPOCH.elapsed());
        let mut conflicts = fs::File::options().append(true).create(true).open(format!("{lock}.broken")).unwrap();
        conflicts.write_all(line.as_bytes()).unwrap();
    }
    // Child processes inherit the lock.
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
    file
}

/// Starts this program again with other arguments.
fn start_self(arguments: &[&str], with_environment: bool) -> std::process::Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    if !with_environment {
        command.env_clear();
    }
    command.args(arguments).spawn().unwrap()
}

fn ignore_signals() {
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false))).unwrap();
    }
}

/// Ignores SIGTERM and SIGHUP, writes its process id to the file, and runs until it is killed.
fn run_forever(file: &str) {
    ignore_signals();
    let partial = format!("{file}.half");
    fs::write(&partial, std::process::id().to_string()).unwrap();
    fs::rename(partial, file).unwrap();
    loop {
        std::thread::sleep(Duration::from_secs(60));
    }
}

fn wait_for(file: &str) {
    while !Path::new(file).exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Uses this much CPU time, even on a busy machine. Gives up after a minute, or twenty times that time if it is longer.
fn burn(ms: &str) {
    let target = Duration::from_millis(ms.parse().unwrap());
    let limit = (20 * target).max(Duration::from_secs(60));
    let start = Instant::now();
    let mut x = 0_u64;
    loop {
        for i in 0..100_000_u64 {
            x = std::hint::black_box(x.wrapping_mul(31).wrapping_add(i));
        }
        let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        if Duration::new(used.tv_sec as u64, used.tv_nsec as u32) > target || start.elapsed() > limit {
            return;
        }
    }
}
