// <details class="menu">: closed by Escape, or by a click elsewhere.

export function menus() {
  const opened = () => document.querySelectorAll("details.menu[open]");
  document.addEventListener("pointerdown", ({ target }) => {
    for (const menu of opened()) if (!menu.contains(target)) menu.open = false;
  });
  document.addEventListener("keydown", ({ key }) => {
    if (key !== "Escape") return;
    for (const menu of opened()) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  });
}
