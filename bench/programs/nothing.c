// SPDX-License-Identifier: Apache-2.0
/* The smallest dynamically linked program: what preload_cost starts again and again. */
int main(void) {
    return 0;
}
