//! Seals what must survive a restart and must not be readable in the database: what a client wants shown to its webhook.
//!
//! The key is derived from the secret of `[auth]`, which all nodes share, or else from a file in the data directory that
//! only this node has. A seal names its key, so that whoever has another one knows that it is not theirs to open; and it
//! is good for one place alone.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use model::text::hex;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};
use ring::rand::{SecureRandom, SystemRandom};
use secrecy::{ExposeSecret, SecretString};

/// Below the data directory.
const FILE: &str = "seal.key";
const KEY: usize = 32;
const NAME: usize = 8;
/// Of the form of a seal.
const FORM: &str = "1";

/// What this node can seal with.
pub(crate) struct Seals {
    secret: Option<SecretString>,
    file: PathBuf,
}

/// Why a seal stays closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closed {
    /// It was made with a key that is not here.
    OtherKey,
    /// It was damaged, or is not for this place.
    Broken,
}

struct Key {
    name: String,
    key: LessSafeKey,
}

/// How long a key's name is.
struct OfName;

impl KeyType for OfName {
    fn len(&self) -> usize {
        NAME
    }
}

impl Seals {
    /// `secret`: what all nodes share, if there is such.
    pub(crate) fn new(secret: Option<SecretString>, data_dir: &Path) -> Self {
        Self { secret, file: data_dir.join(FILE) }
    }

    /// Seals something for one place.
    pub(crate) fn seal(&self, plain: &[u8], place: &str) -> io::Result<String> {
        let Key { name, key } = match &self.secret {
            Some(secret) => Key::of(secret.expose_secret().as_bytes())?,
            None => Key::of(&self.make()?)?,
        };
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).map_err(|_| failed())?;
        let mut sealed = plain.to_vec();
        let aad = Aad::from(place.as_bytes());
        key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut sealed).map_err(|_| failed())?;
        Ok(format!("{FORM}:{name}:{}{}", hex(&nonce), hex(&sealed)))
    }

    /// What was sealed for this place.
    pub(crate) fn open(&self, sealed: &str, place: &str) -> Result<Vec<u8>, Closed> {
        let mut parts = sealed.split(':');
        let (Some(FORM), Some(name), Some(content), None) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(Closed::Broken);
        };
        let key = self.key_of(name).ok_or(Closed::OtherKey)?;
        let mut bytes = unhex(content).ok_or(Closed::Broken)?;
        let (nonce, content) = bytes.split_at_mut_checked(NONCE_LEN).ok_or(Closed::Broken)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| Closed::Broken)?;
        let plain = key.open_in_place(nonce, Aad::from(place.as_bytes()), content).map_err(|_| Closed::Broken)?;
        Ok(plain.to_vec())
    }

    /// One from the file can be opened although there is a secret by now.
    fn key_of(&self, name: &str) -> Option<LessSafeKey> {
        let shared = || Key::of(self.secret.as_ref()?.expose_secret().as_bytes()).ok();
        let own = || Key::of(&read(&self.file).ok()?).ok();
        let key = shared().filter(|key| key.name == name).or_else(|| own().filter(|key| key.name == name))?;
        Some(key.key)
    }

    /// The key of this node, which is made when it is first needed.
    fn make(&self) -> io::Result<[u8; KEY]> {
        match read(&self.file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            found => return found,
        }
        let mut key = [0; KEY];
        SystemRandom::new().fill(&mut key).map_err(|_| failed())?;
        let new = self.file.with_extension(hex(&key[..4]));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        let written = file.write_all(&key).and_then(|()| file.sync_all());
        // Whole or not at all, and never in the place of another.
        let linked = written.and_then(|()| fs::hard_link(&new, &self.file));
        fs::remove_file(&new)?;
        match linked {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            linked => linked?,
        }
        if let Some(dir) = self.file.parent() {
            fs::File::open(dir)?.sync_all()?;
        }
        read(&self.file)
    }
}

impl Key {
    fn of(secret: &[u8]) -> io::Result<Self> {
        let derived = Salt::new(HKDF_SHA256, b"adjutant: seals").extract(secret);
        let key = derived.expand(&[b"key"], &CHACHA20_POLY1305).map_err(|_| failed())?;
        let mut name = [0; NAME];
        derived.expand(&[b"name"], OfName).and_then(|okm| okm.fill(&mut name)).map_err(|_| failed())?;
        Ok(Self { name: hex(&name), key: LessSafeKey::new(UnboundKey::from(key)) })
    }
}

fn read(file: &Path) -> io::Result<[u8; KEY]> {
    let wrong = |_| io::Error::other(format!("{} is not a key: it must have {KEY} bytes", file.display()));
    fs::read(file)?.try_into().map_err(wrong)
}

fn failed() -> io::Error {
    io::Error::other("nothing can be sealed: the system gives no random numbers")
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    if digits.len().is_multiple_of(2) { digits.chunks(2).map(byte).collect() } else { None }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn with(secret: Option<&str>, dir: &Path) -> Seals {
        Seals::new(secret.map(Into::into), dir)
    }

    #[test]
    fn nodes_with_the_same_secret_open_one_anothers_seals() {
        // A2A-1, OPS-5
        let here = tempfile::tempdir().unwrap();
        let there = tempfile::tempdir().unwrap();
        let one = with(Some("s"), here.path());
        let other = with(Some("s"), there.path());
        let sealed = one.seal(b"hunter2", "task/1").unwrap();
        assert_eq!(other.open(&sealed, "task/1").unwrap(), b"hunter2");
        assert!(!sealed.contains("hunter2") && !sealed.contains(&hex(b"hunter2")));
        assert_ne!(one.seal(b"hunter2", "task/1").unwrap(), sealed, "nobody sees that two are the same");
        assert_eq!(other.open(&sealed, "task/2"), Err(Closed::Broken), "it is for its place alone");
        assert_eq!(with(Some("another"), here.path()).open(&sealed, "task/1"), Err(Closed::OtherKey));
        assert_eq!(with(None, here.path()).open(&sealed, "task/1"), Err(Closed::OtherKey));
        assert!(fs::read_dir(here.path()).unwrap().next().is_none(), "no file is needed");
    }

    #[test]
    fn without_a_secret_a_file_is_the_key() {
        let dir = tempfile::tempdir().unwrap();
        let sealed = with(None, dir.path()).seal(b"x", "p").unwrap();
        let file = dir.path().join(FILE);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert_eq!(with(None, dir.path()).open(&sealed, "p").unwrap(), b"x", "also after a restart");
        assert_eq!(with(Some("since"), dir.path()).open(&sealed, "p").unwrap(), b"x", "also with a secret by then");
        fs::write(&file, "short").unwrap();
        assert_eq!(with(None, dir.path()).open(&sealed, "p"), Err(Closed::OtherKey));
        assert!(with(None, dir.path()).seal(b"x", "p").unwrap_err().to_string().contains("seal.key"));
        fs::remove_file(&file).unwrap();
        with(None, dir.path()).seal(b"x", "p").unwrap();
        assert_eq!(with(None, dir.path()).open(&sealed, "p"), Err(Closed::OtherKey), "a lost key is lost");
    }

    #[test]
    fn what_is_no_seal_is_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        let seals = with(Some("s"), dir.path());
        let sealed = seals.seal(b"x", "p").unwrap();
        let name = sealed.split(':').nth(1).unwrap();
        for wrong in ["", "1", "2:a:b", "1::", &format!("1:{name}:"), &format!("1:{name}:zz"), &format!("1:{name}:é0")]
        {
            assert!(seals.open(wrong, "p").is_err(), "{wrong}");
        }
        for at in 0..sealed.len() {
            let mut bytes = sealed.clone().into_bytes();
            bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
            assert!(seals.open(&String::from_utf8(bytes).unwrap(), "p").is_err(), "{at}");
        }
    }
}
