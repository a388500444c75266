hm_fuzz(checkpoint LIBS kubelet)
hm_fuzz(cdi_spec LIBS cdi)
hm_fuzz(dp_messages LIBS kubelet)
