// SPDX-License-Identifier: Apache-2.0
//
// A program whose kind alone matters: linked statically, or against musl.
int main(void) {
    return 0;
}
