/* Training of a network with one hidden layer by back propagation. */
#include <stdio.h>
#define IN 24
#define HIDDEN 16
#define ROUNDS 20

static float w1[IN][HIDDEN], w2[HIDDEN], in[IN], hidden[HIDDEN], delta[HIDDEN];

static float squash(float x) { return x / (1 + (x < 0 ? -x : x)); }

__attribute__((noinline)) static float forward(void) {
    float out = 0;
    for (int h = 0; h < HIDDEN; h++) {
        float sum = 0;
        for (int i = 0; i < IN; i++) sum += in[i] * w1[i][h];
        hidden[h] = squash(sum);
        out += hidden[h] * w2[h];
    }
    return out;
}

__attribute__((noinline)) static void backward(float error) {
    for (int h = 0; h < HIDDEN; h++) {
        float slope = 1 - (hidden[h] < 0 ? -hidden[h] : hidden[h]);
        delta[h] = error * w2[h] * slope * slope;
        w2[h] += 0.05f * error * hidden[h];
    }
    for (int i = 0; i < IN; i++)
        for (int h = 0; h < HIDDEN; h++) w1[i][h] += 0.05f * delta[h] * in[i];
}

int main(void) {
    float error = 0;
    for (int i = 0; i < IN; i++)
        for (int h = 0; h < HIDDEN; h++) w1[i][h] = ((i * 7 + h * 3) % 11 - 5) * 0.05f;
    for (int h = 0; h < HIDDEN; h++) w2[h] = (h % 5 - 2) * 0.1f;
    for (int round = 0; round < ROUNDS; round++)
        for (int sample = 0; sample < 8; sample++) {
            for (int i = 0; i < IN; i++) in[i] = (sample >> i % 3 & 1) ? 1.0f : -1.0f;
            error = (sample & 1 ? 0.5f : -0.5f) - forward();
            backward(error);
        }
    printf("backprop %s\n", error < 0.1f && error > -0.1f ? "learnt" : "not learnt");
    return 0;
}
