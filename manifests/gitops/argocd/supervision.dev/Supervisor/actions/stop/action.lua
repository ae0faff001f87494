obj.spec.operatingMode = "Stopped"
return obj
