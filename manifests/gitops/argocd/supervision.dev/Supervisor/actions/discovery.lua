-- What may be done now. Each action changes spec only: with self-heal on, Git takes it back.
local mode = obj.spec.operatingMode or "Running"
return {
  pause = { disabled = mode ~= "Running" },
  resume = { disabled = mode == "Running" },
  stop = { disabled = mode == "Stopped" },
  restart = { disabled = mode ~= "Running" },
}
