/* The name of an extended resource, by the kubelet's rule. */
#ifndef HM_MODEL_RESOURCE_NAME_H
#define HM_MODEL_RESOURCE_NAME_H

/* NULL where the name is good, else what is wrong, to stand behind it: "is not of the form domain/name". */
const char *resource_name_fault(const char *name);

#endif
