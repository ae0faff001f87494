obj.spec.operatingMode = "Running"
return obj
