// One task per animation frame, however often it is asked for.

/** A function that runs `task` once before the next paint; in a hidden tab, which is never painted, soon. */
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
