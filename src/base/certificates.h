/* SPDX-License-Identifier: MIT */
/* Where a system keeps the certificates of the authorities that it trusts. */
#pragma once

/* The file with the CA certificates of this system, in PEM; NULL if there is none in a known place. Static. */
const char *certificates_of_system(void);
