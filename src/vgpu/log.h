/* One line on stderr where HAMI_LOG_LEVEL is set and not empty; at most 20 in a process. Silent otherwise. */
#ifndef HM_VGPU_LOG_H
#define HM_VGPU_LOG_H

void vgpu_log(const char *text);

#endif
