/* A seeded fault: not formatted. */
int   bad_format( void ) ;
