// Size, contrast and colours, what is shown, and whether voices are told apart, kept in the browser.

const KEY = "speech-translation";
const DEFAULTS = { size: "100", theme: "auto", contrast: "normal", layout: "below", sentences: "growing", voices: "off" };

export function settings(form) {
  const root = document.documentElement;
  const values = { ...DEFAULTS, ...stored() };
  const apply = () => {
    for (const [name, value] of Object.entries(values)) root.dataset[name] = value;
    try {
      localStorage.setItem(KEY, JSON.stringify(values));
    } catch {
      // private windows may have no storage
    }
  };
  for (const control of form.querySelectorAll("select[name]")) {
    if (!(control.name in values)) continue;
    control.value = values[control.name];
    control.addEventListener("change", () => {
      values[control.name] = control.value;
      apply();
    });
  }
  apply();
}

function stored() {
  try {
    return JSON.parse(localStorage.getItem(KEY)) ?? {};
  } catch {
    return {};
  }
}
