// Who is there: by a token that is pasted, or by the code of `kubectl supervisor page`.
import { h } from "./dom.js";

export function signIn(begin, words) {
  const token = h("input", { id: "token", type: "password", autocomplete: "off", spellcheck: "false", required: true });
  const namespace = h("input", { id: "scope", autocomplete: "off", spellcheck: "false", placeholder: "all" });
  const problem = h("p", { class: "problem", role: "alert", hidden: !words }, words);
  const submit = (event) => {
    event.preventDefault();
    begin(token.value.trim(), namespace.value.trim());
  };
  const element = h("form", { class: "signin", onsubmit: submit },
    h("img", { src: "/icon.svg", alt: "", width: 44, height: 44 }),
    h("h1", {}, "Supervision"),
    problem,
    h("label", { for: "token" }, "Kubernetes token"), token,
    h("label", { for: "scope" }, "Namespace ", h("span", { class: "muted" }, "if the token may not see them all")), namespace,
    h("button", { type: "submit", class: "main" }, "Sign in"),
    h("p", { class: "muted" }, "You can do here what the token may do. It stays in the memory of this page and is gone when you close or reload it."),
    h("p", { class: "muted" }, "Get one with ", h("code", {}, "kubectl create token NAME"), ", or let ", h("code", {}, "kubectl supervisor page"), " open this page for you."));
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code) exchange(code, begin, problem);
  else setTimeout(() => token.focus());
  return { element, title: "Sign in", update() {} };
}

/** The code is good once, and not for the API: only for the program that opened this page. */
async function exchange(code, begin, problem) {
  history.replaceState(null, "", "/#/");
  try {
    const answer = await fetch("/signin", { method: "POST", body: code, credentials: "omit", redirect: "error" });
    if (!answer.ok) throw new Error("this link was used already or is too old: run kubectl supervisor page again");
    const { token, namespace } = await answer.json();
    begin(token, namespace);
  } catch (error) {
    problem.textContent = `Not signed in: ${error.message}`;
    problem.hidden = false;
  }
}
