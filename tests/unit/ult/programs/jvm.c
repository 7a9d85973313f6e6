// SPDX-License-Identifier: Apache-2.0
/* libthrum beside a Java virtual machine, as libthrum(7) says: ULTs call Java by thrum_blocking, where a kernel thread attaches
 * itself, and detaches itself before it returns. */
#include <jni.h>
#include <stdio.h>
#include <stdlib.h>
#include <thrum/thrum.h>
#include <thrum/worker.h>

enum { THREADS = 8, ROUNDS = 20 };

static JavaVM *machine;

static void require(int ok, const char *what) {
    if (ok)
        return;
    fprintf(stderr, "jvm: %s\n", what);
    abort();
}

/* Java computes the sum of what it makes of two texts, and collects what is left. */
static void *sum(void *arg) {
    JNIEnv *java;
    long *number = arg;
    char text[32];
    require((*machine)->AttachCurrentThread(machine, (void **)&java, NULL) == JNI_OK, "AttachCurrentThread");
    jclass integer = (*java)->FindClass(java, "java/lang/Integer"),
           system = (*java)->FindClass(java, "java/lang/System");
    require(integer != NULL && system != NULL, "FindClass");
    jmethodID parse = (*java)->GetStaticMethodID(java, integer, "parseInt", "(Ljava/lang/String;)I");
    jmethodID collect = (*java)->GetStaticMethodID(java, system, "gc", "()V");
    require(parse != NULL && collect != NULL, "GetStaticMethodID");
    snprintf(text, sizeof text, "%ld", *number);
    jstring string = (*java)->NewStringUTF(java, text);
    *number = (*java)->CallStaticIntMethod(java, integer, parse, string) + 1;
    if (*number % ROUNDS == 0)
        (*java)->CallStaticVoidMethod(java, system, collect);
    require(!(*java)->ExceptionCheck(java), "an exception");
    require((*machine)->DetachCurrentThread(machine) == JNI_OK, "DetachCurrentThread");
    return NULL;
}

static void *count(void *unused) {
    long number = 0;
    for (long i = 1; i <= ROUNDS; i++) {
        require(thrum_blocking(sum, &number, NULL) == 0, "thrum_blocking");
        require(number == i, "Java has a number that is not ours");
        thrum_yield();
    }
    return unused;
}

int main(void) {
    JNIEnv *java;
    JavaVMInitArgs args = {.version = JNI_VERSION_1_8, .ignoreUnrecognized = JNI_TRUE};
    thrum_t threads[THREADS];
    require(JNI_CreateJavaVM(&machine, (void **)&java, &args) == JNI_OK, "JNI_CreateJavaVM");
    require(thrum_init(NULL) == 0, "thrum_init");
    for (int i = 0; i < THREADS; i++)
        require(thrum_spawn(&threads[i], NULL, count, NULL) == 0, "thrum_spawn");
    for (int i = 0; i < THREADS; i++)
        require(thrum_join(threads[i], NULL) == 0, "thrum_join");
    require(thrum_fini() == 0, "thrum_fini");
    require((*machine)->DestroyJavaVM(machine) == JNI_OK, "DestroyJavaVM");
    return 0;
}
