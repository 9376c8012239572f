// The scripts of every page in the shell. They are served as one (memoryhub/http/static_files.py).
import "./controls.js";
import "./shell.js";
import "./place.js";
import "./shortcuts.js";
import "./events.js";
import "./browser.js";
