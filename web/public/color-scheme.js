// Sets the colour scheme before the first paint. A file of its own because the CSP forbids inline scripts.
(function () {
  var stored = null;
  try {
    stored = window.localStorage.getItem("mantine-color-scheme-value");
  } catch {
    // Storage can be forbidden; the system's scheme is then used.
  }
  var dark =
    stored === "dark" || (stored !== "light" && window.matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.setAttribute("data-mantine-color-scheme", dark ? "dark" : "light");
})();
