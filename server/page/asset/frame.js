// Runs a task at most once per animation frame.

/** Returns a function that runs `task` once before the next paint; in a hidden tab, which is not painted, soon. */
export function perFrame(task) {
  let due = false;
  const run = () => {
    due = false;
    task();
  };
  return () => {
    if (due) return;
    due = true;
    if (document.hidden) setTimeout(run, 200);
    else requestAnimationFrame(run);
  };
}
