"use strict";
const { token, name } = JSON.parse(document.currentScript.dataset.values);
const main = document.querySelector("main");

async function act(action) {
  if (!confirm(action + " " + decodeURIComponent(name) + "?")) return;
  const answer = await fetch("/rollouts/" + name + "/" + action, {
    method: "POST",
    headers: { "X-Zlclient-Token": token },
  });
  say(await answer.text());
}

function say(words) {
  document.querySelector("nav output").textContent = " " + words;
}

document.addEventListener("click", (event) => {
  const action = event.target.dataset?.action;
  if (action) act(action);
});

const events = new EventSource("/events/" + name);
events.onmessage = (event) => {
  const words = document.querySelector("nav output").textContent;
  main.innerHTML = JSON.parse(event.data);
  document.querySelector("nav output").textContent = words;
  document.body.dataset.live = "yes";
};
events.onerror = () => say("not connected; trying again");
