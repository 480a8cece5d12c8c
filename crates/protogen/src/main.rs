//! Writes the generated files: `cargo run -p protogen`.

use anyhow::Result;

fn main() -> Result<()> {
    std::fs::create_dir_all(protogen::output())?;
    for (name, content) in protogen::generate()? {
        std::fs::write(protogen::output().join(name), content)?;
    }
    Ok(())
}
