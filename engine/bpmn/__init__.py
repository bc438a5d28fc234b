"""BPMN 2.0.2 in, frozen ProcessDefinition or every Problem out. Pure."""
