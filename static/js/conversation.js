// The scripts of the conversation beside those of every page. They are served as one (memoryhub/http/static_files.py).
import "./answer-stream.js";
import "./composer.js";
import "./prompts.js";
import "./voice.js";
import "./attach.js";
import "./artifacts.js";
import "./chat-switch.js";
