-- Health of a Supervisor or SupervisorTeam for Argo CD, from the conditions that its status carries.

local function condition(name)
  for _, one in ipairs((obj.status or {}).conditions or {}) do
    if one.type == name then
      return one
    end
  end
  return {}
end

local function health(status, said)
  local words = said.reason or ""
  if said.message ~= nil and said.message ~= "" then
    words = words .. ": " .. said.message
  end
  return { status = status, message = words }
end

if obj.status == nil or obj.status.observedGeneration ~= obj.metadata.generation then
  return { status = "Progressing", message = "The operator has not seen this version yet" }
end

local ready = condition("Ready")
local stalled = condition("Stalled")

if obj.status.phase == "PAUSED" or ready.reason == "Stopped" then
  return health("Suspended", ready)
end
if ready.status == "True" then
  return health("Healthy", ready)
end
if stalled.status == "True" then
  return health("Degraded", stalled)
end
if ready.status ~= "False" or ready.reason == "PodStuckTerminating" then
  return health("Progressing", ready)
end
return health("Degraded", ready)
