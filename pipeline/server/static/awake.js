// Keeps the screen of a phone on: a phone that sleeps neither listens nor shows text.

let wanted = false;
let lock = null;

export function stayAwake(on) {
  if (on === wanted) return;
  wanted = on;
  if (on) ask();
  else lock?.release();
}

async function ask() {
  try {
    lock = await navigator.wakeLock?.request("screen");
    if (!wanted) lock?.release();
  } catch {
    // refused, for instance because the battery is low
  }
}

document.addEventListener("visibilitychange", () => {
  if (wanted && !document.hidden) ask(); // a hidden page loses the lock
});
