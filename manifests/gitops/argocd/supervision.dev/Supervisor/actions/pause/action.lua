obj.spec.operatingMode = "Paused"
return obj
