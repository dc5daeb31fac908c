//! Access permissions of stored data.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use crate::home::Home;

fn modes(home: &Home) -> Vec<(PathBuf, u32)> {
    let directory = home.journal().parent().unwrap().to_owned();
    let files = fs::read_dir(directory).unwrap().map(|file| file.unwrap().path());
    files.map(|file| (file.clone(), file.metadata().unwrap().permissions().mode() & 0o777)).collect()
}

#[tokio::test]
async fn new_files_are_private_and_public_ones_are_named_at_startup() {
    let home = Home::with(
        "[[provider]]\nname = \"off\"\napi_key_env = \"NO_SUCH_KEY\"\nmodels = [\"m\"]\n\
         [[provider]]\nname = \"on\"\nbase_url = \"http://127.0.0.1:1/v1\"\nmodels = [\"m\"]\n",
    );
    let mut server = home.serve().await;
    let greeting = server.greeting("stop").await;
    let off = "off     provider \"off\": its key is missing: set the environment variable NO_SUCH_KEY";
    assert!(greeting.iter().any(|line| line == off), "{greeting:?}");
    assert!(!greeting.iter().any(|line| line.starts_with("warning")), "{greeting:?}");
    let made = modes(&home);
    assert!(made.len() >= 3, "data, log and lock: {made:?}");
    for (path, mode) in &made {
        assert_eq!(*mode, 0o600, "{}", path.display());
    }
    server.child.kill().await.unwrap();
    for (path, _) in &made {
        fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    }
    let greeting = home.serve().await.greeting("stop").await;
    for (path, _) in modes(&home) {
        let warning = format!(
            "warning {0} contains conversations and is open to other users (mode 644): run chmod 600 {0}",
            path.display()
        );
        assert!(greeting.contains(&warning), "{warning}: {greeting:?}");
    }
}
