/* One line on stderr where HAMI_VGPU_LOG is set, and neither empty nor 0; at most 20 in a process. Silent otherwise. */
#ifndef HM_VGPU_LOG_H
#define HM_VGPU_LOG_H

void vgpu_log(const char *text);

#endif
